"""/api/jobs: progress of jobs, stopping and resuming them."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from firth.server.jobs import Jobs

router = APIRouter()


def jobs_of(request: Request) -> Jobs:
    """Return the jobs of the server."""
    jobs: Jobs = request.app.state.workspace.jobs
    return jobs


@router.get("/jobs")
def jobs(request: Request, verb: str | None = None) -> dict[str, Any]:
    """List jobs, the latest first."""
    descriptions = [job.to_json() for job in jobs_of(request).all() if verb in (None, job.verb)]
    return {"jobs": descriptions[::-1]}


@router.get("/jobs/{number}")
def job(number: int, request: Request) -> dict[str, Any]:
    """Describe a job."""
    return jobs_of(request).get(number).to_json()


@router.post("/jobs/{number}/stop")
def stop(number: int, request: Request) -> dict[str, Any]:
    """Stop a job."""
    return jobs_of(request).stop(number).to_json()


@router.post("/jobs/{number}/resume")
def resume(number: int, request: Request) -> dict[str, Any]:
    """Run a stopped job again, from its checkpoint."""
    return jobs_of(request).resume(number).to_json()


@router.delete("/jobs/{number}")
def forget(number: int, request: Request) -> dict[str, Any]:
    """Remove a job from the list."""
    jobs_of(request).forget(number)
    return {"forgotten": number}
