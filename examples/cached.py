"""A web service whose workers share a cache: what one worker computes or deletes, all have computed or deleted.

pip install fastapi uvicorn uvloop 'pygroups[aiocache]'
uvicorn examples.cached:app --workers 3 --loop uvloop

curl localhost:8000/report/2026        # slow, at the first worker that is asked
curl localhost:8000/report/2026        # fast, at each
curl -X DELETE localhost:8000/report/2026
"""

import asyncio
import os
import time

from aiocache import Cache
from fastapi import FastAPI

from pygroups.contrib.aiocache import GroupCache

app = FastAPI()
cache = Cache(GroupCache, group=os.environ.get("CACHE", "reports"), ttl=3600)


@app.get("/report/{year}")
async def report(year: int) -> dict[str, object]:
    found = await cache.get(f"report-{year}")
    if found is None:
        await asyncio.sleep(1)  # much work
        found = {"year": year, "computed_by": os.getpid(), "at": time.time()}
        await cache.set(f"report-{year}", found)
    return {"worker": os.getpid(), "report": found}


@app.delete("/report/{year}")
async def forget(year: int) -> None:
    await cache.delete(f"report-{year}")
