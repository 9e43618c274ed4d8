/** Files of `tune --report`: made whole or not at all. */
import { accessSync, closeSync, constants, openSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { UsageError } from './arguments.ts'

/** The page, and the data of the same name with `.json`. Throws UsageError where one of them cannot be written. */
export function reportFiles(page: string): readonly [page: ReportFile, data: ReportFile] {
  const data = page.replace(/(?:\.html?)?$/, '.json')
  if (/\.json$/.test(page)) throw new UsageError(`--report names the page; the data come beside it, as ${page}`)
  const first = new ReportFile(page)
  try {
    return [first, new ReportFile(data)]
  } catch (error) {
    first.close()
    throw error
  }
}

/** Opened before minutes of measurement rather than behind them. */
class ReportFile {
  readonly path: string
  readonly #part: string

  constructor(path: string) {
    this.path = path
    this.#part = `${path}.part`
    try {
      const found = statSync(path, { throwIfNoEntry: false })
      if (found?.isFile() === false) throw new UsageError(`--report ${path} is no file`)
      if (found !== undefined) accessSync(path, constants.W_OK)
      closeSync(openSync(this.#part, 'w'))
    } catch (error) {
      if (error instanceof UsageError) throw error
      throw new UsageError(`--report ${path} cannot be written (${(error as NodeJS.ErrnoException).code})`)
    }
  }

  /** Throws what the file system throws. */
  write(text: string): void {
    writeFileSync(this.#part, text)
    renameSync(this.#part, this.path)
  }

  /** Leaves nothing but what was written. */
  close(): void {
    rmSync(this.#part, { force: true })
  }
}
export type { ReportFile }
