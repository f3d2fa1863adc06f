// Package browser owns a headless Chromium: it opens pages of this host, asks them, and
// takes pictures of them, for tests and for the pictures of the documentation.
//
// It speaks the Chrome DevTools Protocol over a pair of pipes
// (--remote-debugging-pipe): JSON messages with a zero byte behind each. That needs no
// port and no library.
package browser
