# Reads `go test -v` and prints what a run without -v would have: the output of
# the tests that failed or never ended, and what is not of a test.
function root(name) { sub(/\/.*/, "", name); return name }
function flush() { for (t in out) printf "%s", out[t]; delete out; current = "" }

/^=== (RUN|CONT|NAME|PAUSE) /    { current = root($3); next }
/^ +--- (PASS|SKIP): /           { next }
/^--- (PASS|SKIP): /             { delete out[root($3)]; next }
/^--- FAIL: /                    { print; printf "%s", out[root($3)]; delete out[root($3)]; next }
/^(PASS$|ok  |\?   )/            { flush(); next }
/^FAIL\t/                        { flush(); print; next }
current != ""                    { out[current] = out[current] $0 "\n"; next }
                                 { print }
END                              { flush() }
