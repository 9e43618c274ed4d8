/**
 * Watches the API files of a home, for `start --watch`: the folder of projects and documents, each project's own, and
 * that of its document, by which files that are replaced are noticed as well as those that are written. What has
 * changed is found by reading them.
 */
import { type FSWatcher, readdirSync, statSync, watch } from 'node:fs'
import { join } from 'node:path'
import type { Log } from '../observe/log.ts'
import type { ReloadQueue } from './reload-queue.ts'

interface WatchOutlets {
  /** Something may be different; nothing has happened for a moment since. */
  changed(): void
  warn(cause: string): void
}

interface WatchedFolder {
  readonly watcher: FSWatcher
  /** Which folder it is: another one of the same name must be watched anew. */
  readonly identity: string
}

/** An editor or a copy is at work for as long as things happen at shorter intervals. */
const QUIET_MS = 150
/** But so long after the first of them what is there is read. */
const PATIENCE_MS = 2000
/** Folders that come, go or are replaced without a sign in a watched one. */
const LOOK_MS = 2000
const FOLDER = 'apis'
/** Of the files that declare applications. */
const APPLICATIONS = 'applications'

/** Reloads API files as they change, and at once what has changed since they were read. */
export function watchHome(home: string, reloads: Pick<ReloadQueue, 'begin'>, log: Log): ApiWatch {
  const changed = (): void => reloads.begin('apis', log)
  const files = new ApiWatch(home, { changed, warn: cause => log.warn(cause) })
  changed()
  return files
}

export class ApiWatch {
  readonly #home: string
  readonly #outlets: WatchOutlets
  readonly #folders = new Map<string, WatchedFolder>()
  readonly #look: NodeJS.Timeout
  #timer: NodeJS.Timeout | null = null
  #firstMs = 0
  #hasWarned = false
  /** That of the folder of projects; '' while there is none. */
  #identity = ''

  constructor(home: string, outlets: WatchOutlets) {
    this.#home = home
    this.#outlets = outlets
    this.#follow()
    this.#look = setInterval(() => {
      if (identityOf(join(home, FOLDER)) !== this.#identity) this.#stir()
    }, LOOK_MS)
    this.#look.unref()
  }

  stop(): void {
    clearInterval(this.#look)
    if (this.#timer !== null) clearTimeout(this.#timer)
    for (const { watcher } of this.#folders.values()) watcher.close()
    this.#folders.clear()
  }

  #stir(): void {
    const now = performance.now()
    if (this.#timer === null) this.#firstMs = now
    else clearTimeout(this.#timer)
    const left = this.#firstMs + PATIENCE_MS - now
    this.#timer = setTimeout(
      () => {
        this.#timer = null
        // Before anything is read: what changes from now on is noticed.
        this.#follow()
        this.#outlets.changed()
      },
      Math.max(0, Math.min(QUIET_MS, left)),
    )
  }

  /** Watches what is there now, and nothing else. */
  #follow(): void {
    const root = join(this.#home, FOLDER)
    const folders = [this.#home, root, join(this.#home, APPLICATIONS), ...projectsIn(root)]
    const wanted = new Map(folders.map(path => [path, identityOf(path)]))
    this.#identity = wanted.get(root)!
    for (const [path, { watcher, identity }] of this.#folders) {
      if (wanted.get(path) === identity) continue
      watcher.close()
      this.#folders.delete(path)
    }
    for (const [path, identity] of wanted) if (identity !== '' && !this.#folders.has(path)) this.#add(path, identity)
  }

  #add(path: string, identity: string): void {
    try {
      // Of the home only one name is of interest: the gateway itself writes there.
      const watcher = watch(path, { persistent: false }, (_, name) => {
        if (path !== this.#home || name === null || name === FOLDER || name === APPLICATIONS) this.#stir()
      })
      watcher.on('error', () => this.#stir())
      this.#folders.set(path, { watcher, identity })
    } catch (error) {
      this.#warnOnce(path, (error as NodeJS.ErrnoException).code ?? String(error))
    }
  }

  /** ENOSPC: the limit of watches (fs.inotify.max_user_watches) is reached. */
  #warnOnce(path: string, code: string): void {
    if (this.#hasWarned || code === 'ENOENT') return
    this.#hasWarned = true
    const limit = code === 'ENOSPC' ? '; fs.inotify.max_user_watches limits how many can be' : ''
    this.#outlets.warn(`${path} cannot be watched (${code}${limit}); what changes there takes a reload`)
  }
}

function projectsIn(root: string): readonly string[] {
  try {
    return readdirSync(root, { withFileTypes: true })
      .filter(entry => !entry.name.startsWith('.') && (entry.isDirectory() || entry.isSymbolicLink()))
      .flatMap(({ name }) => [join(root, name), join(root, name, 'Definitions')])
  } catch {
    return []
  }
}

/** '' where there is no folder. */
function identityOf(path: string): string {
  try {
    const stat = statSync(path, { bigint: true })
    return stat.isDirectory() ? `${stat.dev} ${stat.ino}` : ''
  } catch {
    return ''
  }
}
