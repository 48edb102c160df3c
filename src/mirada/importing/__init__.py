"""Models of other toolkits as mirada's: one file a toolkit, its names and habits; nothing of the toolkit is needed."""
