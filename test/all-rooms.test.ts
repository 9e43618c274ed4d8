/**
 * Runs the tests of rooms without threads and sockets in one process: each file by itself would load the sources again.
 * `test/harness/test-files.ts` says which files have a process of their own.
 */
import { resolve } from 'node:path'
import { test } from 'node:test'
import { sharedFiles } from './harness/test-files.ts'

const ROOT = resolve(import.meta.dirname, '..')

for (const file of sharedFiles()) {
  try {
    await import(resolve(ROOT, file))
  } catch (error) {
    test(`${file} can be loaded`, () => Promise.reject(error))
  }
}
