package main

import (
	"context"
	"strconv"
	"time"

	"github.com/jackc/pgx/v4"
	"github.com/jackc/pgx/v4/pgxpool"
)

const columns = "id::text, email, full_name, is_active, created_at, updated_at"

type user struct {
	id, email            string
	fullName             *string
	isActive             bool
	createdAt, updatedAt time.Time
}

type users struct{ pool *pgxpool.Pool }

func (u users) get(ctx context.Context, id string) (*user, error) {
	return one(u.pool.QueryRow(ctx, "select "+columns+" from users where id = $1", id))
}

func (u users) create(ctx context.Context, input userInput) (*user, error) {
	text := "insert into users (id, email, full_name) values ($1, $2, $3) returning " + columns
	return one(u.pool.QueryRow(ctx, text, uuid7(), input.Email, input.FullName))
}

func (u users) createAll(ctx context.Context, inputs []userInput) ([]user, error) {
	ids, emails, names := make([]string, len(inputs)), make([]string, len(inputs)), make([]*string, len(inputs))
	for index, input := range inputs {
		ids[index], emails[index], names[index] = uuid7(), input.Email, input.FullName
	}
	text := "insert into users (id, email, full_name) select * from unnest($1::uuid[], $2::text[], $3::text[]) returning " + columns
	return u.all(ctx, text, ids, emails, names)
}

func (u users) update(ctx context.Context, id string, changes []change) (*user, error) {
	given, values := "", []interface{}{id}
	for _, change := range changes {
		values = append(values, change.value)
		given += change.column + " = $" + strconv.Itoa(len(values)) + ", "
	}
	text := "update users set " + given +
		"updated_at = greatest(clock_timestamp(), updated_at + interval '1 millisecond'), version = version + 1" +
		" where id = $1 returning " + columns
	return one(u.pool.QueryRow(ctx, text, values...))
}

func (u users) list(ctx context.Context, page page) ([]user, error) {
	const order = " order by created_at, id limit $1"
	switch {
	case page.email != "":
		text := "select " + columns + ` from users where lower(email collate "C") = lower($2::text collate "C") limit $1`
		return u.all(ctx, text, page.limit, page.email)
	case page.afterID == "":
		return u.all(ctx, "select "+columns+" from users"+order, page.limit)
	default:
		text := "select " + columns + " from users where (created_at, id) > ($2::timestamptz, $3)" + order
		return u.all(ctx, text, page.limit, page.afterTime, page.afterID)
	}
}

func (u users) all(ctx context.Context, text string, values ...interface{}) ([]user, error) {
	rows, err := u.pool.Query(ctx, text, values...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := make([]user, 0, 100)
	for rows.Next() {
		row, err := one(rows)
		if err != nil {
			return nil, err
		}
		found = append(found, *row)
	}
	return found, rows.Err()
}

func one(row pgx.Row) (*user, error) {
	found := &user{}
	err := row.Scan(&found.id, &found.email, &found.fullName, &found.isActive, &found.createdAt, &found.updatedAt)
	if err == pgx.ErrNoRows {
		return nil, nil
	}
	return found, err
}
