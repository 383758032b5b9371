"""`python -m benchmarks.peers PEER SETTINGS`: trains one peer, prints its result as a line of JSON."""

import json
import sys

from benchmarks.peers import train

if len(sys.argv) != 3:
    sys.exit(__doc__)
print(json.dumps(train(sys.argv[1], **json.loads(sys.argv[2]))))
