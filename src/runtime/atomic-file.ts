/**
 * Files of the data folder that are replaced as a whole. A new version is written to a temporary file and renamed, so
 * that a reader finds the old or the new version even after a crash. Only the owner may read them (0600).
 */
import { readFileSync } from 'node:fs'
import { mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'

const MODE = 0o600

/** Returns undefined where the file does not exist. Throws other errors of the file system. */
export function readIfPresent(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** Rejects with errors of the file system. Callers must not replace one file twice at the same time. */
export async function replaceFile(path: string, text: string): Promise<void> {
  const folder = dirname(path)
  await mkdir(folder, { recursive: true })
  const temporary = `${path}.new`
  // A temporary file that a crash left behind may have another mode.
  await rm(temporary, { force: true })
  const handle = await open(temporary, 'wx', MODE)
  try {
    await handle.writeFile(text)
    await handle.sync()
  } finally {
    await handle.close()
  }
  await rename(temporary, path)
  // Without this a power failure can undo the rename.
  const directory = await open(folder, 'r')
  try {
    await directory.sync()
  } finally {
    await directory.close()
  }
}
