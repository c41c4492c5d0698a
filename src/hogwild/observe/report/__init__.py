"""`hogwild report`: what runs wrote, as one HTML file that needs nothing else.

`runs.py` reads logs, `experiments.py` the objects of experiments; both become a `Run`. `page.py` puts runs, style and
script into one file; `report.js` draws the figures in the browser.
"""
