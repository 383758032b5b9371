"""Models behind HTTP: the interfaces that other programs speak, and the workbench. Alone knows fastapi and uvicorn.

app.py puts it together; guard.py stands before everything; models.py keeps what is served; workbench/ has a file for
each view of the page.
"""
