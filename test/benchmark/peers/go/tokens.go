package main

import (
	"bytes"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"log"
	"strings"
	"sync"
	"time"
)

const cacheEntries = 10000

type claims struct {
	Iss   string          `json:"iss"`
	Aud   json.RawMessage `json:"aud"`
	Sub   string          `json:"sub"`
	Exp   float64         `json:"exp"`
	Roles []string        `json:"roles"`
}

// verifier checks RS256 tokens and remembers those that it accepted.
type verifier struct {
	key              *rsa.PublicKey
	issuer, audience string
	lock             sync.RWMutex
	accepted         map[string]*claims
	order            []string
}

func newVerifier(text, issuer, audience string) *verifier {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		log.Fatal("PUBLIC_KEY is no PEM")
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		log.Fatal(err)
	}
	return &verifier{key: key.(*rsa.PublicKey), issuer: issuer, audience: audience, accepted: map[string]*claims{}}
}

// refusal is the status of a refusal, and 0 for a caller with the role.
// A look-up by string(token) copies nothing.
func (v *verifier) refusal(authorization []byte, role string) int {
	token := bytes.TrimPrefix(authorization, []byte("Bearer "))
	if len(token) == len(authorization) {
		return 401
	}
	v.lock.RLock()
	found := v.accepted[string(token)]
	v.lock.RUnlock()
	if found == nil {
		found = v.prove(string(token))
	}
	if found == nil || found.Exp <= float64(time.Now().Unix()) {
		return 401
	}
	for _, given := range found.Roles {
		if given == role {
			return 0
		}
	}
	return 403
}

func (v *verifier) prove(token string) *claims {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil
	}
	var header struct {
		Alg string `json:"alg"`
	}
	if !decode(parts[0], &header) || header.Alg != "RS256" {
		return nil
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		return nil
	}
	digest := sha256.Sum256([]byte(token[:len(parts[0])+1+len(parts[1])]))
	if rsa.VerifyPKCS1v15(v.key, crypto.SHA256, digest[:], signature) != nil {
		return nil
	}
	found := &claims{}
	if !decode(parts[1], found) || found.Iss != v.issuer || found.Sub == "" || !v.isForUs(found.Aud) {
		return nil
	}
	v.remember(token, found)
	return found
}

func (v *verifier) isForUs(audience json.RawMessage) bool {
	var one string
	if json.Unmarshal(audience, &one) == nil {
		return one == v.audience
	}
	var many []string
	if json.Unmarshal(audience, &many) != nil {
		return false
	}
	for _, name := range many {
		if name == v.audience {
			return true
		}
	}
	return false
}

func (v *verifier) remember(token string, found *claims) {
	v.lock.Lock()
	defer v.lock.Unlock()
	if len(v.order) >= cacheEntries {
		delete(v.accepted, v.order[0])
		v.order = v.order[1:]
	}
	v.accepted[token] = found
	v.order = append(v.order, token)
}

func decode(part string, into interface{}) bool {
	text, err := base64.RawURLEncoding.DecodeString(part)
	return err == nil && json.Unmarshal(text, into) == nil
}
