// Package joint owns how several tasks are decided together: in alternation. After all have
// been explored at once, each step has one method learn one task on the best plan so
// far, with the rest of it given (block-coordinate ascent; adr/0017).
package joint
