/**
 * Runs a page of documentation as its reader would. A block whose info string names a file, such as
 * `yaml conf/apis/A/api.yaml`, is written to that file. A `console` block runs each line that begins with `$ ` in one
 * shell, and compares its output with the lines below: `...` stands for any text of a line, a line `...` for any lines.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { GUARD_MS } from './peers.ts'
import { copyKeptData, LAUNCHER, Program } from './program.ts'

const ROOT = resolve(import.meta.dirname, '../..')
/** The ports that pages name. Each page runs with its own offset. */
const PORTS = [8290, 8253, 9099, 8099, 9443, 9763, 8288, 8025]
const PORT = new RegExp(`\\b(?:${PORTS.join('|')})\\b`, 'g')
/** All ports stay below 32768, where the system takes ports for connections and for port 0. */
const OFFSETS = { least: 11_000, most: 22_900 }
/** Offsets that differ by more than this have no port in common. */
const PORT_SPAN = Math.max(...PORTS) - Math.min(...PORTS)
const END = 'end-of-output'
const FIRST_PAGE = 'README.md'

interface Block {
  /** First word of the info string. */
  readonly kind: string
  /** Second word; '' without one. */
  readonly file: string
  readonly text: string
  /** Line of the page where the text begins, from 1. */
  readonly line: number
}

interface Command {
  readonly line: number
  readonly text: string
  readonly expected: readonly string[]
}

/** The fenced blocks of a page, in order. */
export function blocksOf(page: string): readonly Block[] {
  return [...page.matchAll(/^```(\w+)(?: (\S+))?\n([\s\S]*?)^```$/gm)].map(match => ({
    kind: match[1]!,
    file: match[2] ?? '',
    text: match[3]!,
    line: page.slice(0, match.index).split('\n').length + 1,
  }))
}

function commandsOf({ text, line }: Block): readonly Command[] {
  const commands: { line: number; text: string; expected: string[] }[] = []
  for (const [at, row] of text.trimEnd().split('\n').entries()) {
    if (row.startsWith('$ ')) commands.push({ line: line + at, text: row.slice(2), expected: [] })
    else commands.at(-1)!.expected.push(row)
  }
  return commands
}

/** A pattern of the whole output. Without an expected line it accepts any output. */
export function patternOf(expected: readonly string[]): RegExp {
  if (expected.length === 0) return /^/
  const rows = expected.map(row =>
    row === '...' ? '(?:.*\\n)*?' : `${row.trimEnd().split('...').map(RegExp.escape).join('.*?')}\\n`,
  )
  return new RegExp(`^${rows.join('')}$`)
}

/** Runs all blocks of a page in a folder of its own. Throws for the first command with another output or exit code. */
export async function runPage(path: string): Promise<void> {
  const offset = await takeOffset()
  const reader = new Reader(offset)
  // Readers of the guide have followed the README.
  if (path !== FIRST_PAGE) reader.keepData()
  try {
    for (const block of blocksOf(readFileSync(join(ROOT, path), 'utf8'))) {
      if (block.file !== '') reader.write(block.file, block.text)
      else if (block.kind === 'console') for (const command of commandsOf(block)) await reader.run(path, command)
      else assert.fail(`${path}:${block.line}: a block is a console or names its file`)
    }
  } finally {
    await reader.stop()
    taken.delete(offset)
  }
}

/** A reader who follows a page: a folder, a shell, and the gateway that `npm start` runs. */
class Reader {
  readonly #folder = mkdtempSync(join(tmpdir(), 'sluice-page-'))
  readonly #offset: number
  readonly #env: Record<string, string>
  readonly #shell: ChildProcess
  #gateway: Program | null = null
  #output = ''
  #wake = Promise.withResolvers<void>()

  constructor(offset: number) {
    this.#offset = offset
    const sample = join('conf', 'apis', 'Sample', 'api.yaml')
    this.write(sample, readFileSync(join(ROOT, sample), 'utf8'))
    this.write('conf/deployment.toml', '')
    // In a terminal curl shows no progress beside the response.
    this.write('.curlrc', 'no-progress-meter\n')
    this.#addProgram('sluice', `exec '${process.execPath}' '${LAUNCHER}' "$@" --home '${join(this.#folder, 'conf')}'`)
    this.#addProgram('npm', 'while [ "$1" != -- ]; do shift; done; shift; exec sluice "$@"')
    const path = `${join(this.#folder, 'bin')}:${process.env.PATH}`
    const own = { PATH: path, CURL_HOME: this.#folder, NO_COLOR: '1', SLUICE_SET_SERVER_OFFSET: String(offset) }
    this.#env = { ...(process.env as Record<string, string>), ...own }
    this.#shell = spawn('sh', [], { cwd: this.#folder, env: this.#env, stdio: ['pipe', 'pipe', 'inherit'] })
    // One pipe for both outputs keeps their order.
    this.#shell.stdin!.write('exec 2>&1\n')
    this.#shell.stdout!.setEncoding('utf8').on('data', (piece: string) => {
      this.#output += piece
      this.#wake.resolve()
      this.#wake = Promise.withResolvers()
    })
  }

  #addProgram(name: string, script: string): void {
    const file = join(this.#folder, 'bin', name)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, `#!/bin/sh\n${script}\n`)
    chmodSync(file, 0o755)
  }

  write(file: string, text: string): void {
    const path = join(this.#folder, file)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, this.#withOwnPorts(text))
  }

  /** The gateway has started before. */
  keepData(): void {
    copyKeptData(join(this.#folder, 'conf', 'data'))
  }

  #withOwnPorts(text: string): string {
    return text.replaceAll(PORT, port => String(Number(port) + this.#offset))
  }

  async run(page: string, { line, text, expected }: Command): Promise<void> {
    const where = `${page}:${line}: $ ${text}`
    const output = text === 'npm start' ? await this.#start() : await this.#runInShell(text, where)
    const pattern = patternOf(expected.map(row => this.#withOwnPorts(row)))
    assert.ok(pattern.test(output), `${where}\nexpected:\n${expected.join('\n')}\noutput:\n${output}`)
  }

  /** Returns what the gateway has printed when it is ready. Its last line is the command to try. */
  async #start(): Promise<string> {
    const words = ['start', '--sample', '--home', join(this.#folder, 'conf')]
    const gateway = new Program(process.execPath, [LAUNCHER, ...words], this.#env)
    this.#gateway = gateway
    const ended = gateway.exited.then(() => assert.fail(`the gateway has ended: ${gateway.err.text}`))
    await Promise.race([gateway.said.until(/^try: .*\n/m), ended])
    ended.catch(() => {})
    return gateway.said.text
  }

  /** Returns the output, with a line end at its end. Throws if the command fails. */
  async #runInShell(command: string, where: string): Promise<string> {
    this.#output = ''
    this.#shell.stdin!.write(`${this.#withOwnPorts(command)}\nprintf '\\n${END} %s\\n' $?\n`)
    const pattern = new RegExp(`\\n${END} (\\d+)\\n$`)
    const guard = setTimeout(() => this.#wake.reject(new Error(`${where} does not end: ${this.#output}`)), GUARD_MS)
    try {
      while (!pattern.test(this.#output)) await this.#wake.promise
    } finally {
      clearTimeout(guard)
    }
    const [, code] = pattern.exec(this.#output)!
    const output = this.#output
      .replace(pattern, '')
      .replaceAll('\r', '')
      .replace(/[ \t]+$/gm, '')
    assert.equal(code, '0', `${where}\nended with ${code}: ${output}`)
    return output === '' || output.endsWith('\n') ? output : `${output}\n`
  }

  async stop(): Promise<void> {
    this.#shell.kill()
    // After an upgrade it is another process than the one that was started.
    const lock = join(this.#folder, 'conf', 'data', 'lock')
    if (this.#gateway !== null && existsSync(lock)) endProcess(Number.parseInt(readFileSync(lock, 'latin1'), 10))
    await this.#gateway?.kill()
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

/** Does nothing where there is no such process. */
export function endProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    assert.equal((error as NodeJS.ErrnoException).code, 'ESRCH')
  }
}

/** Offsets of the pages that run now. */
const taken = new Set<number>()
const ATTEMPTS_MAX = 1000

/** An offset at which all ports are free, and that no other page uses. */
async function takeOffset(): Promise<number> {
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    const offset = OFFSETS.least + Math.floor(Math.random() * (OFFSETS.most - OFFSETS.least))
    if ([...taken].some(other => Math.abs(other - offset) <= PORT_SPAN)) continue
    taken.add(offset)
    const free = await Promise.all(PORTS.map(port => isFree(port + offset)))
    if (free.every(Boolean)) return offset
    taken.delete(offset)
  }
  throw new Error('no free ports for a page')
}

function isFree(port: number): Promise<boolean> {
  return new Promise(done => {
    const server = createServer()
    server.once('error', () => done(false))
    server.listen(port, () => server.close(() => done(true)))
  })
}
