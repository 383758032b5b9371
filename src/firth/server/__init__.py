"""The HTTP server: APIs that other programs use, and the workbench. Only this package imports fastapi and uvicorn.

app.py creates the application; guard.py checks every request; models.py holds the served models; workbench/ has one
file per view of the page.
"""
