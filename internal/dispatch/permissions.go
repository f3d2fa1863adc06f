package dispatch

import (
	"fmt"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
)

// workerPublishes is all that a worker may publish: results, signs of life,
// requests for and acknowledgements of jobs, and reads of objects. It cannot
// submit jobs, write objects, or change a stream or a consumer.
func workerPublishes() []string {
	objects := "OBJ_" + objectBucket
	return []string{
		resultPrefix + ">", beatPrefix + ">",
		"$JS.API.INFO",
		"$JS.API.CONSUMER.INFO." + jobStream + ".>",
		"$JS.API.CONSUMER.MSG.NEXT." + jobStream + ".>",
		"$JS.ACK." + jobStream + ".>",
		"$JS.API.STREAM.INFO." + objects,
		"$JS.API.STREAM.MSG.GET." + objects,
		"$JS.API.DIRECT.GET." + objects + ".>",
		"$JS.API.CONSUMER.CREATE." + objects + ".>",
		"$JS.API.CONSUMER.DELETE." + objects + ".>",
		"$JS.API.CONSUMER.INFO." + objects + ".>",
		"$JS.FC.>",
	}
}

// workerSubscribes is all that a worker may hear.
func workerSubscribes() []string { return []string{"_INBOX.>"} }

// nkeyUsers returns the users of an embedded hub.
func (u *users) nkeyUsers() []*server.NkeyUser {
	all := []*server.NkeyUser{{Nkey: u.Controller}}
	for _, w := range u.Workers {
		all = append(all, &server.NkeyUser{Nkey: w, Permissions: &server.Permissions{
			Publish:   &server.SubjectPermission{Allow: workerPublishes()},
			Subscribe: &server.SubjectPermission{Allow: workerSubscribes()},
		}})
	}
	return all
}

// serverConfig returns the configuration of a hub that runs on its own, with the
// same users and permissions.
func serverConfig(u *users) string {
	quoted := func(subjects []string) string { return `["` + strings.Join(subjects, `", "`) + `"]` }
	var b strings.Builder
	fmt.Fprintf(&b, "# A hub of its own: nats-server -c %s, started in this folder.\nport: 4222\nmax_payload: %d\n", configFile, maxPayload)
	fmt.Fprintf(&b, "jetstream { store_dir: \"jetstream\" }\ntls { cert_file: %q, key_file: %q, min_version: \"1.3\" }\n", certFile, certKeyFile)
	fmt.Fprintf(&b, "authorization {\n  worker = { publish = { allow = %s }, subscribe = { allow = %s } }\n  users = [\n    { nkey: %s }\n", quoted(workerPublishes()), quoted(workerSubscribes()), u.Controller)
	for _, w := range u.Workers {
		fmt.Fprintf(&b, "    { nkey: %s, permissions: $worker }\n", w)
	}
	b.WriteString("  ]\n}\n")
	return b.String()
}
