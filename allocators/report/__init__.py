"""Reports of a MetricAllocator: as text, as an HTML page, and as JSON.

All render the same figures, the dict that `MetricAllocator.figures` describes and returns.
"""
# Not compiled: it is not worth the time that compiling takes.

from allocators.report.as_html import as_html as as_html
from allocators.report.as_json import as_json as as_json
from allocators.report.as_text import as_text as as_text
