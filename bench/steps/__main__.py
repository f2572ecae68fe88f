"""What `process.ask` starts: steps of one network in one library, and a line of JSON."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

from bench.steps.process import Order, main

print(json.dumps(asdict(main(Order(**json.loads(sys.argv[1]))))))
