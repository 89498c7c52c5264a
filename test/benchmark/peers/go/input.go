package main

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/valyala/fasthttp"
)

type userInput struct {
	Email    string  `json:"email"`
	FullName *string `json:"full_name"`
}

type change struct {
	column string
	value  interface{}
}

type page struct {
	limit     int
	email     string
	afterTime time.Time
	afterID   string
}

func newUser(body []byte) (userInput, bool) {
	var input userInput
	if json.Unmarshal(body, &input) != nil {
		return input, false
	}
	return input, isAllowed(input)
}

func newUsers(body []byte) ([]userInput, bool) {
	var batch struct {
		Items []userInput `json:"items"`
	}
	if json.Unmarshal(body, &batch) != nil || len(batch.Items) < 1 || len(batch.Items) > 100 {
		return nil, false
	}
	for _, input := range batch.Items {
		if !isAllowed(input) {
			return nil, false
		}
	}
	return batch.Items, true
}

func isAllowed(input userInput) bool {
	return isEmail(input.Email) && (input.FullName == nil || utf8.RuneCountInString(*input.FullName) <= 255)
}

// changesOf tells a null apart from an absent member: only full_name can be cleared.
func changesOf(body []byte) ([]change, bool) {
	var given struct {
		Email    *string         `json:"email"`
		FullName json.RawMessage `json:"full_name"`
		IsActive *bool           `json:"is_active"`
	}
	if json.Unmarshal(body, &given) != nil {
		return nil, false
	}
	var changes []change
	if given.Email != nil {
		if !isEmail(*given.Email) {
			return nil, false
		}
		changes = append(changes, change{"email", *given.Email})
	}
	if given.FullName != nil {
		var name *string
		if json.Unmarshal(given.FullName, &name) != nil || (name != nil && utf8.RuneCountInString(*name) > 255) {
			return nil, false
		}
		changes = append(changes, change{"full_name", name})
	}
	if given.IsActive != nil {
		changes = append(changes, change{"is_active", *given.IsActive})
	}
	return changes, true
}

func pageOf(query *fasthttp.Args) (page, bool) {
	wanted := page{limit: 100, email: string(query.Peek("email"))}
	if query.Has("limit") {
		limit, err := query.GetUint("limit")
		if err != nil || limit < 1 || limit > 1000 {
			return wanted, false
		}
		wanted.limit = limit
	}
	if query.Has("email") && !isEmail(wanted.email) {
		return wanted, false
	}
	if cursor := query.Peek("cursor"); len(cursor) > 0 {
		text, err := base64.RawURLEncoding.DecodeString(string(cursor))
		parts := strings.Split(string(text), " ")
		if err != nil || len(parts) != 2 {
			return wanted, false
		}
		wanted.afterTime, err = time.Parse(milliseconds, parts[0])
		wanted.afterID = parts[1]
		return wanted, err == nil && isUUID(parts[1])
	}
	return wanted, true
}

func isEmail(text string) bool {
	local, domain, found := strings.Cut(text, "@")
	if !found || local == "" || domain == "" || strings.Contains(domain, "@") || utf8.RuneCountInString(text) > 255 {
		return false
	}
	return strings.IndexFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) < 0
}

func isUUID(text string) bool {
	if len(text) != 36 {
		return false
	}
	for index, letter := range []byte(text) {
		isDash := index == 8 || index == 13 || index == 18 || index == 23
		isHex := letter >= '0' && letter <= '9' || letter >= 'a' && letter <= 'f' || letter >= 'A' && letter <= 'F'
		if isDash != (letter == '-') || (!isDash && !isHex) {
			return false
		}
	}
	return true
}
