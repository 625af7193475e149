/* What starting and stopping costs. */
int main(void) {
    return 0;
}
