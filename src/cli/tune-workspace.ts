/** Workspace of `tune`: a copy of the home in a temporary folder, and the backend with recorded delays. */
import { cpSync, lstatSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Worker } from 'node:worker_threads'
import { DelaysError, parseDelays } from '../tune/delays.ts'
import { startSynthetic } from '../tune/gateway-system.ts'
import { TuneFailed } from '../tune/system.ts'
import type { CliArguments } from './arguments.ts'

export const BODY_BYTES = 1024
/** Context of the API of the synthetic backend. */
export const SYNTHETIC_CONTEXT = '/tune'

export class Workspace {
  readonly #folder: string
  #backend: Worker | null = null

  private constructor(folder: string) {
    this.#folder = folder
  }

  /** Throws TuneFailed where the home cannot be copied. */
  static make({ home, dataDir }: CliArguments): Workspace {
    const excluded = resolve(dataDir)
    let folder = ''
    try {
      folder = mkdtempSync(join(tmpdir(), 'sluice-tune-'))
      const workspace = new Workspace(folder)
      cpSync(home, workspace.home, { recursive: true, filter: file => resolve(file) !== excluded && isCopied(file) })
      return workspace
    } catch (error) {
      if (folder !== '') rmSync(folder, { recursive: true, force: true })
      throw new TuneFailed(`the home cannot be copied to a temporary folder: ${(error as Error).message}`)
    }
  }

  get home(): string {
    return join(this.#folder, 'home')
  }

  get dataDir(): string {
    return join(this.#folder, 'data')
  }

  /** Replaces all APIs by an open one whose backend has these delays. Throws DelaysError. */
  async replay(file: string, seed: number): Promise<void> {
    const { port, worker } = await startSynthetic({ delaysMs: readDelays(file), bodyBytes: BODY_BYTES, seed })
    this.#backend = worker
    rmSync(join(this.home, 'apis'), { recursive: true, force: true })
    mkdirSync(join(this.home, 'apis', 'Tune'), { recursive: true })
    const endpointConfig = { endpoint_type: 'http', production_endpoints: { url: `http://127.0.0.1:${port}` } }
    const data = { name: 'Tune', version: '1', context: SYNTHETIC_CONTEXT, isDefaultVersion: true, endpointConfig }
    const project = { type: 'api', version: 'v4.0.0', data: { ...data, securityScheme: ['none'] } }
    writeFileSync(join(this.home, 'apis', 'Tune', 'api.yaml'), JSON.stringify(project))
  }

  /** Called when no gateway uses the folder any more. */
  async remove(): Promise<void> {
    await this.#backend?.terminate()
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

/** Sockets, pipes and devices are nothing that a configuration names. */
function isCopied(file: string): boolean {
  const found = lstatSync(file)
  return found.isFile() || found.isDirectory() || found.isSymbolicLink()
}

function readDelays(file: string): readonly number[] {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw new DelaysError(`${file} cannot be read (${(error as NodeJS.ErrnoException).code})`)
  }
  return parseDelays(text)
}
