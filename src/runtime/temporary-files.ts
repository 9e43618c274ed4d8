/**
 * Temporary files that belong to a thread of this process: their names carry both ids. Those of a process that was
 * killed are found by the next one, those of a thread that has died by its process.
 */
import { randomUUID } from 'node:crypto'
import { readdir, stat, unlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { threadId } from 'node:worker_threads'

/** Earlier versions wrote no thread. */
const NAME = /^sluice-body-(\d+)-(?:(\d+)-)?[-0-9a-f]{36}$/

/** A new path for a body. `folder`: by default that of the system for temporary files. */
export function temporaryPath(folder = tmpdir()): string {
  return join(folder, `sluice-body-${process.pid}-${threadId}-${randomUUID()}`)
}

/**
 * Deletes the files of processes that are gone, and returns how many. Called before this process makes one: files of
 * its own id are of a predecessor with the same id, as in containers. Files of other users stay, and so does what
 * cannot be deleted.
 */
export async function deleteStaleFiles(folder = tmpdir()): Promise<number> {
  const startMs = Date.now() - process.uptime() * 1000
  let deleted = 0
  for (const name of await readdir(folder).catch(() => [])) {
    const id = Number(NAME.exec(name)?.[1] ?? 0)
    if (id === 0 || (id !== process.pid && isAlive(id))) continue
    const path = join(folder, name)
    try {
      // Another container with ids of its own may share the folder: what is newer than this process is not touched.
      const { uid, mtimeMs } = await stat(path)
      if (uid !== process.getuid?.() || mtimeMs >= startMs) continue
      await unlink(path)
      deleted++
    } catch {
      // Gone already, or not ours.
    }
  }
  return deleted
}

/** Deletes the files of a thread of this process that has ended. Ids of threads do not come again. */
export async function deleteFilesOfThread(thread: number, folder = tmpdir()): Promise<void> {
  for (const name of await readdir(folder).catch(() => [])) {
    const [, processId, ownThread] = NAME.exec(name) ?? []
    const isOfThread = Number(processId) === process.pid && Number(ownThread) === thread
    if (isOfThread) await unlink(join(folder, name)).catch(() => undefined)
  }
}

function isAlive(id: number): boolean {
  try {
    process.kill(id, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
