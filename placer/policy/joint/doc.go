// Package joint owns how several tasks are decided together: by turns. After all have
// been explored at once, each turn has one method learn one task on the best plan so
// far, with the rest of it given (block-coordinate ascent; adr/0017).
package joint
