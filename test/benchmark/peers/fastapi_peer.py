"""FastAPI on uvicorn with uvloop and httptools: SQLAlchemy over asyncpg, PyJWT at every request. It has what users compare."""

import os
import re
import secrets
import time
import uuid
from datetime import datetime, timezone
from typing import List, Optional

import jwt
import uvicorn
from fastapi import Depends, FastAPI, HTTPException, Request
from pydantic import BaseModel, Field, validator
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import create_async_engine

COLUMNS = "id, email, full_name, is_active, created_at, updated_at"
ADDRESS = re.compile(r"^[^@\s]+@[^@\s]+$")
PUBLIC_KEY, ISSUER, AUDIENCE = os.environ["PUBLIC_KEY"], os.environ["ISSUER"], os.environ["AUDIENCE"]

url = os.environ["POSTGRES_URL"].replace("postgres://", "postgresql+asyncpg://")
engine = create_async_engine(url, pool_size=10, max_overflow=0, isolation_level="AUTOCOMMIT")
app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)


def written(moment: datetime) -> str:
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


class UserCreate(BaseModel):
    email: str = Field(max_length=255)
    full_name: Optional[str] = Field(None, max_length=255)

    @validator("email")
    def is_address(cls, value):
        if not ADDRESS.match(value):
            raise ValueError("no address")
        return value


class UserRead(BaseModel):
    id: uuid.UUID
    email: str
    full_name: Optional[str]
    is_active: bool
    created_at: str
    updated_at: str

    @validator("created_at", "updated_at", pre=True)
    def as_text(cls, value):
        return written(value)


def demand(role: str):
    def check(request: Request) -> None:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        try:
            claims = jwt.decode(
                token,
                PUBLIC_KEY,
                algorithms=["RS256"],
                audience=AUDIENCE,
                issuer=ISSUER,
                options={"require": ["exp", "sub"]},
            )
        except jwt.PyJWTError:
            raise HTTPException(401)
        if scheme != "Bearer":
            raise HTTPException(401)
        if role not in claims.get("roles", []):
            raise HTTPException(403)

    # A dependency that is not async would run in a thread of its own.
    async def checked(request: Request) -> None:
        check(request)

    return Depends(checked)


reads, writes = demand("users.read"), demand("users.write")


@app.middleware("http")
async def request_id(request: Request, call_next):
    response = await call_next(request)
    response.headers["X-Request-ID"] = request.headers.get("x-request-id") or str(uuid.uuid4())
    return response


async def rows(statement: str, values):
    try:
        async with engine.connect() as connection:
            return (await connection.execute(text(statement), values)).mappings().all()
    except IntegrityError:
        raise HTTPException(409)


def first(found):
    if not found:
        raise HTTPException(404)
    return found[0]


def uuid7() -> uuid.UUID:
    value = (time.time_ns() // 1_000_000) << 80 | 7 << 76 | secrets.randbits(12) << 64
    return uuid.UUID(int=value | 2 << 62 | secrets.randbits(62))


@app.get("/health")
async def health():
    return {"status": "healthy"}


@app.post("/api/v1/users/", status_code=201, response_model=UserRead, dependencies=[writes])
async def create(user: UserCreate):
    statement = f"insert into users (id, email, full_name) values (:id, :email, :full_name) returning {COLUMNS}"
    return first(await rows(statement, {"id": uuid7(), **user.dict()}))


@app.get("/api/v1/users/", response_model=List[UserRead], dependencies=[reads])
async def list_users(limit: int = 100):
    if not 1 <= limit <= 1000:
        raise HTTPException(422)
    return await rows(f"select {COLUMNS} from users order by created_at, id limit :limit", {"limit": limit})


@app.get("/api/v1/users/{user_id}", response_model=UserRead, dependencies=[reads])
async def get(user_id: uuid.UUID):
    return first(await rows(f"select {COLUMNS} from users where id = :id", {"id": user_id}))


if __name__ == "__main__":
    port = int(os.environ["PORT"])
    uvicorn.run(app, host="127.0.0.1", port=port, loop="uvloop", http="httptools", log_level="error", access_log=False)
