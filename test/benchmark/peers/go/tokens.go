package main

import (
	"bytes"
	"log"
	"sync"

	"github.com/golang-jwt/jwt"
)

const cacheEntries = 10000

type claims struct {
	jwt.RegisteredClaims
	Roles []string `json:"roles"`
}

// verifier checks RS256 tokens and remembers those that it accepted.
type verifier struct {
	parser   *jwt.Parser
	key      jwt.Keyfunc
	issuer   string
	audience string
	lock     sync.RWMutex
	accepted map[string]*claims
	order    []string
}

func newVerifier(text, issuer, audience string) *verifier {
	key, err := jwt.ParseRSAPublicKeyFromPEM([]byte(text))
	if err != nil {
		log.Fatal(err)
	}
	return &verifier{
		parser:   jwt.NewParser(jwt.WithValidMethods([]string{"RS256"})),
		key:      func(*jwt.Token) (interface{}, error) { return key, nil },
		issuer:   issuer,
		audience: audience,
		accepted: map[string]*claims{},
	}
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
	if found == nil || found.Valid() != nil {
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
	found := &claims{}
	_, err := v.parser.ParseWithClaims(token, found, v.key)
	isForUs := found.VerifyIssuer(v.issuer, true) && found.VerifyAudience(v.audience, true)
	if err != nil || !isForUs || found.Subject == "" || found.ExpiresAt == nil {
		return nil
	}
	v.remember(token, found)
	return found
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
