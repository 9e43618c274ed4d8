/** The progress line on a terminal. Writes nothing to log files. */
export class Progress {
  /** `bench:all` reads the lines of its parts, and sets `BENCH_TERMINAL` where it writes them to a terminal. */
  readonly #isVisible = process.stderr.isTTY === true || process.env.BENCH_TERMINAL === '1'
  readonly #hasColours = process.stderr.isTTY === true && process.stderr.hasColors()
  #done = 0
  #total = 1

  begin(steps: number): void {
    this.#done = 0
    this.#total = Math.max(1, steps)
  }

  step(scenario: string, text: string): void {
    if (!this.#isVisible) return
    const share = Math.min(1, this.#done++ / this.#total)
    const width = 24
    const bar = '█'.repeat(Math.round(share * width)).padEnd(width, '░')
    process.stderr.write(`\r\x1b[2K${this.#paint('36', bar)} ${this.#paint('1', scenario)} ${text}`)
  }

  clear(): void {
    if (this.#isVisible) process.stderr.write('\r\x1b[2K')
  }

  #paint(code: string, text: string): string {
    return this.#hasColours ? `\x1b[${code}m${text}\x1b[0m` : text
  }
}
