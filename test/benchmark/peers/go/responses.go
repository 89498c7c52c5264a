package main

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgconn"
	"github.com/valyala/fasthttp"
)

const milliseconds = "2006-01-02T15:04:05.000Z"

func respondWithOne(ctx *fasthttp.RequestCtx, found *user, err error, status int) {
	switch {
	case err != nil:
		refuse(ctx, statusOf(err))
	case found == nil:
		refuse(ctx, 404)
	default:
		write(ctx, status, appendUser(make([]byte, 0, 512), found))
	}
}

func respondWithAll(ctx *fasthttp.RequestCtx, found []user, err error, status int) {
	if err != nil {
		refuse(ctx, statusOf(err))
		return
	}
	text := append(make([]byte, 0, 256*len(found)+2), '[')
	for index := range found {
		if index > 0 {
			text = append(text, ',')
		}
		text = appendUser(text, &found[index])
	}
	write(ctx, status, append(text, ']'))
}

func statusOf(err error) int {
	var refusal *pgconn.PgError
	if errors.As(err, &refusal) && refusal.Code == "23505" {
		return 409
	}
	return 500
}

func refuse(ctx *fasthttp.RequestCtx, status int) {
	ctx.SetStatusCode(status)
	ctx.SetContentType("application/problem+json")
	ctx.SetBodyString(`{"status":` + strconv.Itoa(status) + `}`)
}

func write(ctx *fasthttp.RequestCtx, status int, body []byte) {
	ctx.SetStatusCode(status)
	ctx.SetContentType("application/json; charset=utf-8")
	ctx.Response.SetBodyRaw(body)
}

func nextLink(page page, last user) string {
	cursor := base64.RawURLEncoding.EncodeToString([]byte(last.createdAt.UTC().Format(milliseconds) + " " + last.id))
	return "</api/v1/users/?limit=" + strconv.Itoa(page.limit) + "&cursor=" + cursor + `>; rel="next"`
}

func appendUser(text []byte, found *user) []byte {
	text = appendString(append(text, `{"id":`...), found.id)
	text = appendString(append(text, `,"email":`...), found.email)
	text = append(text, `,"full_name":`...)
	if found.fullName == nil {
		text = append(text, "null"...)
	} else {
		text = appendString(text, *found.fullName)
	}
	text = strconv.AppendBool(append(text, `,"is_active":`...), found.isActive)
	text = appendTime(append(text, `,"created_at":`...), found.createdAt)
	text = appendTime(append(text, `,"updated_at":`...), found.updatedAt)
	return append(text, '}')
}

func appendTime(text []byte, moment time.Time) []byte {
	return append(moment.UTC().AppendFormat(append(text, '"'), milliseconds), '"')
}

// appendString leaves all but plain ASCII to encoding/json.
func appendString(text []byte, value string) []byte {
	for index := 0; index < len(value); index++ {
		if letter := value[index]; letter < ' ' || letter > '~' || letter == '"' || letter == '\\' {
			encoded, _ := json.Marshal(value)
			return append(text, encoded...)
		}
	}
	return append(append(append(text, '"'), value...), '"')
}
