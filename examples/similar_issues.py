#!/usr/bin/env python3
"""Prints a comment that names up to three earlier issues with nearly the same title, or nothing.

    examples/similar_issues.py issues.json NUMBER    # docs/integrations/github-issues.md
"""

import json
import subprocess
import sys

issues = {issue["number"]: " ".join(issue["title"].split()) for issue in json.load(open(sys.argv[1]))}
number = int(sys.argv[2])
new = issues.pop(number)
earlier = [other for other in issues if other < number]
if earlier:
    command = ["cognate", "rank", "--json", "--top-k", "3", "--threshold", "0.65", "--", new, "-"]
    titles = "\n".join(issues[other] for other in earlier)
    ranked = json.loads(subprocess.run(command, input=titles, capture_output=True, text=True, check=True).stdout)
    alike = [f"- #{earlier[one['index']]} ({one['score']:.2f})" for one in ranked["results"] if one["related"]]
    if alike:
        print("Possibly the same as", *alike, sep="\n")
