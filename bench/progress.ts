/** The line that says what is being measured. Only on a terminal: a log file is told the results and nothing else. */

export class Progress {
  readonly #visible = process.stderr.isTTY === true
  readonly #colours = this.#visible && process.stderr.hasColors()
  #done = 0
  #total = 1

  begin(steps: number): void {
    this.#done = 0
    this.#total = Math.max(1, steps)
  }

  step(scenario: string, what: string): void {
    if (!this.#visible) return
    const share = Math.min(1, this.#done++ / this.#total)
    const width = 24
    const bar = '█'.repeat(Math.round(share * width)).padEnd(width, '░')
    const text = `${this.#paint('36', bar)} ${this.#paint('1', scenario)} ${what}`
    process.stderr.write(`\r\x1b[2K${text}`)
  }

  clear(): void {
    if (this.#visible) process.stderr.write('\r\x1b[2K')
  }

  #paint(code: string, text: string): string {
    return this.#colours ? `\x1b[${code}m${text}\x1b[0m` : text
  }
}
