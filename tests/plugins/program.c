/* Not a library. */
int main(void) { return 0; }
