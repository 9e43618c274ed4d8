/** A headless Chromium, driven by the DevTools protocol over its WebSocket. */
import { type ChildProcess, spawn } from 'node:child_process'
import { accessSync, constants, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { WebSocket } from 'ws'
import { GUARD_MS } from './peers.ts'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']

/** Path of the browser of this machine; '' without one. `SLUICE_BROWSER` names another one. */
export function browserPath(): string {
  const { SLUICE_BROWSER = '', PATH = '' } = process.env
  const found = PATH.split(delimiter).flatMap(folder => NAMES.map(name => join(folder, name)))
  return [SLUICE_BROWSER, ...found].find(isExecutable) ?? ''
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return path !== ''
  } catch {
    return false
  }
}

interface Message {
  readonly id?: number
  readonly method?: string
  readonly params?: Readonly<Record<string, unknown>>
  readonly result?: Readonly<Record<string, unknown>>
  readonly error?: { readonly message: string }
}

interface Screen {
  readonly width: number
  readonly height: number
  readonly isDark?: boolean
}

export class Browser {
  /** What the page has complained of: exceptions, errors of the console, violations of its policy. */
  readonly complaints: string[] = []
  /** Bytes that the page has received, on the wire. */
  receivedBytes = 0
  readonly #child: ChildProcess
  readonly #profile: string
  readonly #socket: WebSocket
  readonly #waiting = new Map<number, PromiseWithResolvers<Message>>()
  #session = ''
  #lastId = 0

  private constructor(child: ChildProcess, profile: string, socket: WebSocket) {
    this.#child = child
    this.#profile = profile
    this.#socket = socket
    socket.on('message', text => this.#take(JSON.parse(String(text)) as Message))
  }

  /** Opens an empty page. Accepts every certificate. */
  static async open(path: string): Promise<Browser> {
    const profile = mkdtempSync(join(tmpdir(), 'sluice-browser-'))
    const flags = ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run']
    const own = ['--ignore-certificate-errors', '--remote-debugging-port=0', `--user-data-dir=${profile}`]
    const child = spawn(path, [...flags, ...own, 'about:blank'], { stdio: ['ignore', 'ignore', 'pipe'] })
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    const guard = setTimeout(() => reject(new Error(`the browser did not start: ${said}`)), GUARD_MS)
    let said = ''
    child.stderr!.setEncoding('utf8').on('data', (piece: string) => {
      said += piece
      const url = /^DevTools listening on (ws:\S+)$/m.exec(said)?.[1]
      if (url !== undefined) resolve(url)
    })
    child.once('exit', () => reject(new Error(`the browser has ended: ${said}`)))
    const socket = new WebSocket(await promise)
    clearTimeout(guard)
    await new Promise((opened, failed) => socket.once('open', opened).once('error', failed))
    const browser = new Browser(child, profile, socket)
    await browser.#attach()
    return browser
  }

  async #attach(): Promise<void> {
    const { targetInfos } = await this.send('Target.getTargets')
    const pages = targetInfos as readonly { readonly type: string; readonly targetId: string }[]
    const { targetId } = pages.find(({ type }) => type === 'page')!
    const { sessionId } = await this.send('Target.attachToTarget', { targetId, flatten: true })
    this.#session = sessionId as string
    for (const domain of ['Page', 'Runtime', 'Network', 'Log']) await this.send(`${domain}.enable`)
  }

  async send(method: string, params: object = {}): Promise<Readonly<Record<string, unknown>>> {
    const id = ++this.#lastId
    const waiting = Promise.withResolvers<Message>()
    this.#waiting.set(id, waiting)
    const session = this.#session === '' ? {} : { sessionId: this.#session }
    this.#socket.send(JSON.stringify({ id, method, params, ...session }))
    const { result = {}, error } = await waiting.promise
    if (error !== undefined) throw new Error(`${method}: ${error.message}`)
    return result
  }

  async setScreen({ width, height, isDark = false }: Screen): Promise<void> {
    await this.send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: false })
    const features = [{ name: 'prefers-color-scheme', value: isDark ? 'dark' : 'light' }]
    await this.send('Emulation.setEmulatedMedia', { features })
  }

  async goTo(url: string): Promise<void> {
    await this.send('Page.navigate', { url })
  }

  /** The value of an expression in the page; a promise is awaited. */
  async evaluate(expression: string): Promise<unknown> {
    const answer = await this.send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true })
    const { result, exceptionDetails } = answer as {
      readonly result: { readonly value?: unknown }
      readonly exceptionDetails?: { readonly text: string; readonly exception?: { readonly description?: string } }
    }
    if (exceptionDetails === undefined) return result.value
    throw new Error(`${expression}: ${exceptionDetails.exception?.description ?? exceptionDetails.text}`)
  }

  /** Resolves once the expression is true, also across navigations. */
  async until(expression: string): Promise<void> {
    const end = performance.now() + GUARD_MS
    while (performance.now() < end) {
      const isTrue = await this.evaluate(`Boolean(${expression})`).catch(() => false)
      if (isTrue === true) return
      await new Promise(resolve => setTimeout(resolve, 50))
    }
    const shown = await this.evaluate('location.href + " " + document.body.innerText.slice(0, 500)').catch(String)
    throw new Error(`never true: ${expression}; the page: ${shown}; complaints: ${this.complaints.join('; ')}`)
  }

  /** Presses and releases a key, such as `Tab`. */
  async press(key: string): Promise<void> {
    const code = { Tab: 9, Enter: 13, Escape: 27, ArrowRight: 39, ArrowDown: 40 }[key] ?? 0
    const event = { key, code: key, windowsVirtualKeyCode: code, ...(key === 'Enter' ? { text: '\r' } : {}) }
    await this.send('Input.dispatchKeyEvent', { type: 'keyDown', ...event })
    await this.send('Input.dispatchKeyEvent', { type: 'keyUp', ...event, text: undefined })
  }

  /** PNG of the window, or of the whole page. */
  async screenshot(isWhole = false): Promise<Buffer> {
    const { data } = await this.send('Page.captureScreenshot', { format: 'png', captureBeyondViewport: isWhole })
    return Buffer.from(data as string, 'base64')
  }

  async close(): Promise<void> {
    this.#socket.terminate()
    const ended = new Promise(resolve => this.#child.once('exit', resolve))
    if (this.#child.exitCode === null && this.#child.kill('SIGKILL')) await ended
    rmSync(this.#profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
  }

  #take({ id, method, params = {}, ...rest }: Message): void {
    if (id !== undefined) {
      this.#waiting.get(id)?.resolve(rest)
      this.#waiting.delete(id)
    } else if (method === 'Network.dataReceived') this.receivedBytes += params.dataLength as number
    else if (method === 'Runtime.exceptionThrown') this.complaints.push(JSON.stringify(params.exceptionDetails))
    else if (method === 'Log.entryAdded') {
      const { level, text, url = '' } = params.entry as { level: string; text: string; url?: string }
      if (level === 'error' || level === 'warning') this.complaints.push(`${text} ${url}`)
    } else if (method === 'Runtime.consoleAPICalled' && ['error', 'warning', 'assert'].includes(String(params.type))) {
      this.complaints.push(JSON.stringify(params.args))
    }
  }
}
