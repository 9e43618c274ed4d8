/** The dashboard of this node: its app and the files of its page, which load with the first request for them. */
import { hash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { extname, join } from 'node:path'
import type { ControlPlan, PrimaryCall, PrimaryCallResults } from '../plan/control-messages.ts'
import type { Dashboard, PageFile } from './dashboard/dashboard-app.ts'
import type { MountedApp } from './management-options.ts'
import type { KeyManager } from './oauth/key-manager.ts'

interface LocalDashboardContext {
  readonly manager: KeyManager
  readonly plan: () => Pick<ControlPlan, 'configuration'>
  callPrimary<One extends PrimaryCall>(call: One): Promise<PrimaryCallResults[One['kind']]>
}

/** Two folders up, and down again: the bundle of a thread is in `lib/`, beside `src/`. */
const FOLDER = join(import.meta.dirname, '../../src/control/dashboard/page')
const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
}
/** Name in the page -> file of the package. */
const CHARTS = { 'uplot.js': 'uPlot.esm.js', 'uplot.css': 'uPlot.min.css' }

export class LocalDashboard implements MountedApp {
  readonly paths = ['/dashboard']
  readonly area = 'console'
  readonly #context: LocalDashboardContext
  #loading: Promise<Dashboard> | null = null

  constructor(context: LocalDashboardContext) {
    this.#context = context
  }

  readonly fetch: MountedApp['fetch'] = async (request, bindings) => {
    this.#loading ??= this.#load()
    return (await this.#loading).fetch(request, bindings)
  }

  /** Ends the streams of viewers, which would keep the listener from closing. */
  async close(): Promise<void> {
    const dashboard = await this.#loading
    dashboard?.close()
  }

  async #load(): Promise<Dashboard> {
    const { openDashboard } = await import('./dashboard/dashboard-app.ts')
    const { manager, plan, callPrimary } = this.#context
    return openDashboard({
      manager,
      isOpen: () => plan().configuration.management.dashboard,
      roles: () => plan().configuration.management.dashboard_roles,
      files: readPageFiles(),
      gather: parts => callPrimary({ kind: 'dashboard', parts }),
      configuration: () => callPrimary({ kind: 'configuration' }),
    })
  }
}

/** By name. */
function readPageFiles(): ReadonlyMap<string, PageFile> {
  const { resolve } = createRequire(import.meta.url)
  const own = readdirSync(FOLDER).map(name => [name, join(FOLDER, name)] as const)
  const charts = Object.entries(CHARTS).map(([name, file]) => [name, resolve(`uplot/dist/${file}`)] as const)
  return new Map([...own, ...charts].map(([name, path]) => [name, pageFile(path)]))
}

function pageFile(path: string): PageFile {
  const text = readFileSync(path, 'utf8')
  return { type: TYPES[extname(path)] ?? 'text/plain', text, tag: `"${hash('sha256', text, 'base64url')}"` }
}
