package foreign

import "fmt"

// Nodes gives the nodes of a file, which name one another by ids, their places in
// its list, and names that are different.
type Nodes struct {
	at    map[int64]int
	taken map[string]bool
}

// NewNodes returns the nodes of a file that has none yet.
func NewNodes() *Nodes { return &Nodes{map[int64]int{}, map[string]bool{}} }

// Add adds the next node of the list; id is nil where the file gives none.
func (n *Nodes) Add(id *int64, name string) error {
	if id == nil {
		return fmt.Errorf("node %d of the list (%s) has no id", len(n.at), name)
	}
	if _, twice := n.at[*id]; twice {
		return fmt.Errorf("node %d (%s): an earlier node has the same id", *id, name)
	}
	n.at[*id] = len(n.at)
	return nil
}

// Edge returns the places of the nodes that edge k leads from and to.
func (n *Nodes) Edge(k int, from, to *int64) (u, v int, err error) {
	if from == nil || to == nil {
		return 0, 0, fmt.Errorf("edge %d has no sourceId or no destId", k)
	}
	u, ok1 := n.at[*from]
	v, ok2 := n.at[*to]
	if !ok1 || !ok2 {
		return 0, 0, fmt.Errorf("edge %d, from %d to %d: no such node", k, *from, *to)
	}
	return u, v, nil
}

// Name returns a name that no node has yet: name, or name#id.
func (n *Nodes) Name(name string, id int64) (string, error) {
	if name == "" || n.taken[name] {
		name = fmt.Sprintf("%s#%d", name, id)
	}
	if n.taken[name] {
		return "", fmt.Errorf("node %d: the name %q is taken", id, name)
	}
	n.taken[name] = true
	return name, nil
}
