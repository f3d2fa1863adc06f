package report

// VersionFormat names the version of Version as a JSON document.
const VersionFormat = "placer version 1"

// Version says which build of the program made a result.
type Version struct {
	Format   string `json:"format"`
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Modified bool   `json:"modified"` // built from files that differ from the commit
	Go       string `json:"go"`
	Platform string `json:"platform"`
}
