"""What a MetricAllocator has counted, as text and as a page for people, and as JSON for programs.

All render the same figures, a dict that `MetricAllocator.figures` makes: see there for what is in it.
"""
# Not compiled: it is not worth the time that compiling takes.

from allocators.report.as_html import as_html as as_html
from allocators.report.as_json import as_json as as_json
from allocators.report.as_text import as_text as as_text
