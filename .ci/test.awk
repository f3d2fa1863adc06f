# Reads what "go test -v" prints for packages. Prints a line for each package, all that
# a package printed if it failed, and at the end which tests were skipped, and why.
/^=== / { test = $3; next }
/^ *--- PASS: / || /^PASS$/ { next }
/^ *--- SKIP: / {
	name = $3
	why = note[name] == "" ? "no reason given" : note[name]
	sub(/\/[^\/]*$/, "/...", name)
	if (!seen[why, name]++) names[why] = names[why] " " name
	count[why]++
	skips++
	next
}
/^(ok|FAIL|\?) *\t/ {
	if (/^FAIL/) printf "%s", said
	if (!/^\?/) print
	said = ""
	split("", note)
	next
}
{
	said = said $0 "\n"
	if (/^ +[A-Za-z0-9_]+\.go:[0-9]+: /) { line = $0; sub(/^ +[A-Za-z0-9_]+\.go:[0-9]+: /, "", line); note[test] = line }
}
END {
	printf "%s", said
	if (!skips) print "no test was skipped"
	for (why in names) printf "%d skipped, %s:%s\n", count[why], why, names[why] | "sort"
}
