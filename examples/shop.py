"""A web service whose workers share a dict and a lock, without a server beside it.

    pip install fastapi uvicorn
    uvicorn examples.shop:app --workers 3

    curl -X PUT localhost:8000/stock/apples/100
    curl -X POST localhost:8000/sell/apples
    curl localhost:8000/stock

Kill a worker with `kill -9`: no sale is lost and none is made twice.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, HTTPException

from pygroups.blocks import Blocks, Lock, ReplicatedDict


@asynccontextmanager
async def shop(app: FastAPI) -> AsyncIterator[None]:
    group, journal = os.environ.get("SHOP", "shop"), os.environ.get("SHOP_JOURNAL", "shop-journal")
    async with Blocks(group, profile="uniform", journal=journal, rejoin=True) as blocks:
        app.state.stock = ReplicatedDict(blocks, "stock", str, int)
        app.state.till = Lock(blocks, "till")
        yield


app = FastAPI(lifespan=shop)


@app.get("/stock")
async def stock() -> dict[str, object]:
    return {"worker": os.getpid(), "stock": dict(app.state.stock)}


@app.put("/stock/{item}/{number}")
async def fill(item: str, number: int) -> None:
    await app.state.stock.set(item, number)


@app.post("/sell/{item}")
async def sell(item: str) -> dict[str, int]:
    async with app.state.till as grant:  # the writes of earlier holders are here
        left = app.state.stock.get(item, 0) - 1
        if left < 0:
            raise HTTPException(409, f"no {item} left")
        await app.state.stock.set(item, left)
    return {"worker": os.getpid(), "left": left, "token": grant.token}
