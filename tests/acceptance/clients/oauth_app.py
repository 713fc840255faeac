"""An app as the public client's documentation shows it: its helper signs people in."""

import sys

import uvicorn
from fastapi import FastAPI, Request
from huggingface_hub import attach_huggingface_oauth, parse_huggingface_oauth

app = FastAPI()
attach_huggingface_oauth(app)


@app.get("/")
def greet(request: Request) -> dict[str, str | None]:
    info = parse_huggingface_oauth(request)
    if info is None:
        return {"user": None}
    return {"user": info.user_info.preferred_username, "scope": info.scope}


uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
