/* Windows of real histories, for feed.pml: read from the file `windows` in the folder of the verifier. */
#include <stdio.h>
#include <stdlib.h>

enum { MOST_WINDOWS = 20000, MOST_EVENTS = 24, MOST_CHANGES = 8 };

static int windows;
static int sizes[MOST_WINDOWS];
static unsigned char events[MOST_WINDOWS][MOST_EVENTS + 1];   /* kind * 16 + process; ends with 0 */
static unsigned char users[MOST_WINDOWS][MOST_CHANGES];       /* by writer */
static unsigned char bases[MOST_WINDOWS][MOST_CHANGES];       /* by user: its version before the window, 0 or 1 */
static unsigned char authors[MOST_WINDOWS][MOST_CHANGES + 1]; /* by position: the writer */
static unsigned char numbers[MOST_WINDOWS][MOST_CHANGES + 1]; /* by position: the version, counted from the base */
static unsigned char turns[MOST_WINDOWS][MOST_CHANGES];       /* by writer: the position */
static unsigned char reads[MOST_WINDOWS][MOST_CHANGES];       /* by reader: the last position read */
static char accepted[MOST_WINDOWS];

static int readNumber(FILE *file) {
  int number;
  if (fscanf(file, "%d", &number) != 1) {
    fprintf(stderr, "the file of windows is not complete\n");
    exit(2);
  }
  return number;
}

static int readBytes(FILE *file, unsigned char *bytes) {
  int count = readNumber(file);
  for (int index = 0; index < count; index++) bytes[index] = readNumber(file);
  return count;
}

static void printAccepted(void) {
  for (int window = 0; window < windows; window++) printf("window %d %s\n", window, accepted[window] ? "accepted" : "refused");
}

static void readWindows(void) {
  FILE *file = fopen("windows", "r");
  if (!file || windows) exit(2);
  windows = readNumber(file);
  if (windows > MOST_WINDOWS) exit(2);
  for (int window = 0; window < windows; window++) {
    events[window][readBytes(file, events[window])] = 0;
    readBytes(file, users[window]);
    readBytes(file, bases[window]);
    sizes[window] = readBytes(file, authors[window] + 1);
    readBytes(file, numbers[window] + 1);
    readBytes(file, reads[window]);
    for (int position = 1; position <= sizes[window]; position++) turns[window][authors[window][position]] = position;
  }
  fclose(file);
  atexit(printAccepted);
}

static void startWindow(int window, unsigned char *userOf, unsigned char *base, unsigned char *readTo) {
  for (int index = 0; index < sizes[window]; index++) userOf[index] = users[window][index];
  for (int index = 0; index < sizes[window]; index++) base[index] = bases[window][index];
  for (int index = 0; index < 2; index++) readTo[index] = reads[window][index];
}

static int eventAt(int window, int at) { return events[window][at]; }

static int isExpected(int window, int position, int author, int number) {
  return position <= sizes[window] && authors[window][position] == author && numbers[window][position] == number;
}
