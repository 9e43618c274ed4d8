/**
 * The folder for the temporary files of a run of the tests: in memory where possible, because a home or a database on
 * a disk takes ten times as long to make, write through and remove.
 */
import { accessSync, chmodSync, constants, mkdtempSync, readFileSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const IN_MEMORY = '/dev/shm'
/** The package, its installation and its container take 1 GiB. */
const FREE_BYTES_MIN = 3 * 2 ** 30

/** Makes a folder, which is removed when this process ends. */
export function makeTemporaryFolder(): string {
  const folder = mkdtempSync(join(isUsable() ? IN_MEMORY : tmpdir(), 'sluice-'))
  // Tests run the program and databases as other users too.
  chmodSync(folder, 0o1777)
  process.once('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }))
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
  return folder
}

function isUsable(): boolean {
  try {
    accessSync(IN_MEMORY, constants.W_OK)
    const { bavail, bsize } = statfsSync(IN_MEMORY)
    return Math.min(bavail * bsize, process.availableMemory()) >= FREE_BYTES_MIN && canExecute()
  } catch {
    // There is no such folder on other systems.
    return false
  }
}

/** Containers often mount the folder with `noexec`. */
function canExecute(): boolean {
  const mounts = readFileSync('/proc/self/mounts', 'utf8').split('\n')
  const options = mounts.findLast(mount => mount.split(' ')[1] === IN_MEMORY)?.split(' ')[3]
  return options !== undefined && !options.split(',').includes('noexec')
}
