/**
 * Watches the API, application and policy files of a home, for `start --watch`. It watches folders: the home, `apis`,
 * `applications`, `policies` and its levels, each project and its `Definitions`. A watched folder reports replaced
 * files as well as written ones, and a reload finds what has changed.
 */
import { type FSWatcher, readdirSync, statSync, watch } from 'node:fs'
import { join } from 'node:path'
import { POLICIES_FOLDER } from '../apis/policy-files.ts'
import { POLICY_LEVELS } from '../throttle/policy-body.ts'
import type { Log } from '../observe/log.ts'
import type { ReloadQueue } from './reload-queue.ts'

interface WatchListener {
  /** Files may have changed, and no event has come for a moment. */
  changed(): void
  warn(cause: string): void
}

interface WatchedFolder {
  readonly watcher: FSWatcher
  /** Device and inode: another folder of the same name needs another watcher. */
  readonly identity: string
}

/** Quiet after the last event: an editor or a copy causes many events at short intervals. */
const QUIET_MS = 150
/** From the first event to the reload at most. */
const DELAY_MS_MAX = 2000
/** Between two looks at the identity of `apis`, which can change without an event. */
const LOOK_MS = 2000
const FOLDER = 'apis'
/** Folder of the files that declare applications. */
const APPLICATIONS = 'applications'
/** Names in the home. */
const WATCHED: readonly string[] = [FOLDER, APPLICATIONS, POLICIES_FOLDER]

/** Reloads API files as they change, and once now: they may have changed since they were read. */
export function watchHome(home: string, reloads: Pick<ReloadQueue, 'start'>, log: Log): ApiWatch {
  const changed = (): void => reloads.start('apis', log)
  const files = new ApiWatch(home, { changed, warn: cause => log.warn(cause) })
  changed()
  return files
}

export class ApiWatch {
  readonly #home: string
  readonly #listener: WatchListener
  readonly #folders = new Map<string, WatchedFolder>()
  readonly #look: NodeJS.Timeout
  #timer: NodeJS.Timeout | null = null
  #firstMs = 0
  #hasWarned = false
  /** Identity of the folder `apis`; '' while there is none. */
  #identity = ''

  constructor(home: string, listener: WatchListener) {
    this.#home = home
    this.#listener = listener
    this.#follow()
    this.#look = setInterval(() => {
      if (identityOf(join(home, FOLDER)) !== this.#identity) this.#changed()
    }, LOOK_MS)
    this.#look.unref()
  }

  stop(): void {
    clearInterval(this.#look)
    if (this.#timer !== null) clearTimeout(this.#timer)
    for (const { watcher } of this.#folders.values()) watcher.close()
    this.#folders.clear()
  }

  #changed(): void {
    const now = performance.now()
    if (this.#timer === null) this.#firstMs = now
    else clearTimeout(this.#timer)
    const left = this.#firstMs + DELAY_MS_MAX - now
    this.#timer = setTimeout(
      () => {
        this.#timer = null
        // Before the reload reads the files: later changes cause events again.
        this.#follow()
        this.#listener.changed()
      },
      Math.max(0, Math.min(QUIET_MS, left)),
    )
  }

  /** Watches the folders that exist now, and no others. */
  #follow(): void {
    const root = join(this.#home, FOLDER)
    const policies = join(this.#home, POLICIES_FOLDER)
    const levels = [...POLICY_LEVELS, 'deny'].map(level => join(policies, level))
    const folders = [this.#home, root, join(this.#home, APPLICATIONS), policies, ...levels, ...projectsIn(root)]
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
      // In the home itself the node writes files of its own.
      const watcher = watch(path, { persistent: false }, (_, name) => {
        if (path !== this.#home || name === null || WATCHED.includes(name)) this.#changed()
      })
      watcher.on('error', () => this.#changed())
      this.#folders.set(path, { watcher, identity })
    } catch (error) {
      this.#warnOnce(path, (error as NodeJS.ErrnoException).code ?? String(error))
    }
  }

  /** ENOSPC: the limit of watchers (fs.inotify.max_user_watches) is reached. */
  #warnOnce(path: string, code: string): void {
    if (this.#hasWarned || code === 'ENOENT') return
    this.#hasWarned = true
    const limit = code === 'ENOSPC' ? '; fs.inotify.max_user_watches limits the watchers' : ''
    this.#listener.warn(`${path} cannot be watched (${code}${limit}); after a change there run sluice reload`)
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

/** '' for no folder. */
function identityOf(path: string): string {
  try {
    const stat = statSync(path, { bigint: true })
    return stat.isDirectory() ? `${stat.dev} ${stat.ino}` : ''
  } catch {
    return ''
  }
}
