/** A process that runs test files in turn: what it reports to `npm test`, which ends it where nothing goes on. */

/** The test that begins in a file, or the file itself; or the processor time that the file has taken. */
export interface Report {
  readonly file: string
  readonly test?: string | undefined
  readonly processorMs?: number
}

const PREFIX = 'test process reports '

/** Written at once, because a test that never gives way keeps the events of the runner from being written. */
export function report(report: Report): void {
  process.stdout.write(`${PREFIX}${JSON.stringify(report)}\n`)
}

/** The process as `npm test` sees it. */
export class TestProcess {
  /** Last lines of standard error. */
  stderr = ''
  /** What has happened last in the file. */
  last = 'no test has begun'
  readonly #files: readonly string[]
  readonly #limitMs: number
  readonly #abort = new AbortController()
  #timer: NodeJS.Timeout | undefined
  /** The end of its output, which may be the beginning of a line. */
  #rest = ''
  #file = ''

  /** `limitMs` is the longest time in which no test and no file may begin. */
  constructor(files: readonly string[], limitMs: number) {
    this.#files = files
    this.#limitMs = limitMs
    this.#restart()
  }

  /** Aborted at the limit. */
  get signal(): AbortSignal {
    return this.#abort.signal
  }

  /** The file that runs or ran last; all files where the process has not begun one. */
  get file(): string {
    return this.#file || this.#files.join(' ')
  }

  /** The files after it. */
  get left(): readonly string[] {
    return this.#file === '' ? [] : this.#files.slice(this.#files.indexOf(this.#file) + 1)
  }

  /** Takes a piece of standard output. Returns the processor times in it. */
  hear(output: string): readonly (readonly [file: string, ms: number])[] {
    const lines = `${this.#rest}${output}`.split('\n')
    this.#rest = lines.pop()!
    const reports = lines
      .filter(line => line.startsWith(PREFIX))
      .map(line => JSON.parse(line.slice(PREFIX.length)) as Report)
    for (const { file, test, processorMs } of reports) {
      this.#file = file
      if (processorMs !== undefined) this.last = 'all its tests have ended'
      else this.last = test === undefined ? 'no test has begun' : `the last test that has begun: ${test}`
    }
    if (reports.length > 0) this.#restart()
    return reports.flatMap(({ file, processorMs }) => (processorMs === undefined ? [] : [[file, processorMs]]))
  }

  ended(): void {
    clearTimeout(this.#timer)
  }

  #restart(): void {
    clearTimeout(this.#timer)
    const end = (): void => {
      const reason = `ended, because nothing has gone on for ${this.#limitMs / 1000} s; ${this.last}`
      this.#abort.abort(new Error(reason))
    }
    this.#timer = setTimeout(end, this.#limitMs)
  }
}
