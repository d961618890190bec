/* Prints every constant that src/comm/mpi/binding.ts holds, as the header of an MPI installation defines it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>

static const char *separator = "{";

static void number(const char *name, intptr_t value) {
  printf("%s\"%s\": %lld", separator, name, (long long)value);
  separator = ",\n ";
}

static void handle(const char *name, void *value) {
#ifdef OPEN_MPI
  /* An address differs from process to process: what counts is whose it is. */
  Dl_info info;
  int known = dladdr(value, &info) && info.dli_saddr == value && info.dli_sname;
  printf("%s\"%s\": \"%s\"", separator, name, known ? info.dli_sname : "?");
  separator = ",\n ";
#else
  number(name, (intptr_t)value);
#endif
}

#define HANDLE(name) handle(#name, (void *)(intptr_t)MPI_##name)
#define NUMBER(name) number(#name, (intptr_t)MPI_##name)

int main(void) {
  HANDLE(COMM_WORLD);
  HANDLE(BYTE);
  HANDLE(DOUBLE);
  HANDLE(SUM);
  HANDLE(MIN);
  HANDLE(MAX);
  HANDLE(ERRORS_RETURN);
  HANDLE(INFO_NULL);
  HANDLE(FILE_NULL);
  NUMBER(STATUS_IGNORE);
  NUMBER(STATUSES_IGNORE);
  NUMBER(THREAD_FUNNELED);
  NUMBER(MODE_RDWR);
  number("sizeof MPI_Comm", sizeof(MPI_Comm));
  number("sizeof MPI_Request", sizeof(MPI_Request));
  number("sizeof MPI_File", sizeof(MPI_File));
  number("sizeof MPI_Offset", sizeof(MPI_Offset));
  number("sizeof MPI_Status at most 64", sizeof(MPI_Status) <= 64);
  printf("}\n");
  return 0;
}
