// fasthttp and pgx, which prepares its statements by itself: token cache, JSON written by hand.
package main

import (
	"context"
	"log"
	"os"
	"strings"

	"github.com/jackc/pgx/v4/pgxpool"
	"github.com/valyala/fasthttp"
)

const usersPath = "/api/v1/users/"

func main() {
	config, err := pgxpool.ParseConfig(os.Getenv("POSTGRES_URL"))
	if err != nil {
		log.Fatal(err)
	}
	config.MaxConns = 10
	pool, err := pgxpool.ConnectConfig(context.Background(), config)
	if err != nil {
		log.Fatal(err)
	}
	service := &service{
		users:  users{pool},
		tokens: newVerifier(os.Getenv("PUBLIC_KEY"), os.Getenv("ISSUER"), os.Getenv("AUDIENCE")),
	}
	log.Fatal(fasthttp.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), service.respond))
}

type service struct {
	users  users
	tokens *verifier
}

func (s *service) respond(ctx *fasthttp.RequestCtx) {
	if id := ctx.Request.Header.Peek("X-Request-ID"); len(id) > 0 {
		ctx.Response.Header.SetBytesV("X-Request-ID", id)
	} else {
		ctx.Response.Header.Set("X-Request-ID", uuid4())
	}
	path := string(ctx.Path())
	if path == "/health" {
		write(ctx, 200, []byte(`{"status":"healthy"}`))
		return
	}
	if !strings.HasPrefix(path, usersPath) {
		refuse(ctx, 404)
		return
	}
	isRead := ctx.IsGet()
	role := "users.write"
	if isRead {
		role = "users.read"
	}
	if status := s.tokens.refusal(ctx.Request.Header.Peek("Authorization"), role); status != 0 {
		refuse(ctx, status)
		return
	}
	rest := path[len(usersPath):]
	switch {
	case rest == "" && isRead:
		s.list(ctx)
	case rest == "" && ctx.IsPost():
		s.create(ctx)
	case rest == "batch" && ctx.IsPost():
		s.createAll(ctx)
	case rest == "changes":
		refuse(ctx, 404)
	case !isUUID(rest):
		refuse(ctx, 422)
	case isRead:
		user, err := s.users.get(ctx, rest)
		respondWithOne(ctx, user, err, 200)
	case ctx.IsPatch():
		s.update(ctx, rest)
	default:
		refuse(ctx, 405)
	}
}

func (s *service) create(ctx *fasthttp.RequestCtx) {
	if input, ok := newUser(ctx.PostBody()); ok {
		user, err := s.users.create(ctx, input)
		respondWithOne(ctx, user, err, 201)
	} else {
		refuse(ctx, 422)
	}
}

func (s *service) createAll(ctx *fasthttp.RequestCtx) {
	if input, ok := newUsers(ctx.PostBody()); ok {
		found, err := s.users.createAll(ctx, input)
		respondWithAll(ctx, found, err, 201)
	} else {
		refuse(ctx, 422)
	}
}

func (s *service) update(ctx *fasthttp.RequestCtx, id string) {
	if changes, ok := changesOf(ctx.PostBody()); ok {
		user, err := s.users.update(ctx, id, changes)
		respondWithOne(ctx, user, err, 200)
	} else {
		refuse(ctx, 422)
	}
}

func (s *service) list(ctx *fasthttp.RequestCtx) {
	page, ok := pageOf(ctx.QueryArgs())
	if !ok {
		refuse(ctx, 422)
		return
	}
	found, err := s.users.list(ctx, page)
	if err == nil && page.email == "" && len(found) == page.limit {
		ctx.Response.Header.Set("Link", nextLink(page, found[len(found)-1]))
	}
	respondWithAll(ctx, found, err, 200)
}
