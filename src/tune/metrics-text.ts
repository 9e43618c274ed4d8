/** Reads the text format of Prometheus, as the gateway renders it. */

interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? ([^ ]+)/
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g

export class MetricsText {
  readonly #samples: readonly Sample[]

  constructor(text: string) {
    this.#samples = text.split('\n').flatMap(line => {
      const match = LINE.exec(line)
      if (match === null) return []
      const [, name = '', labels = '', value] = match
      const pairs = [...labels.matchAll(LABEL)].map(([, label, given]) => [label!, given!] as const)
      return [{ name, labels: Object.fromEntries(pairs), value: Number(value) }]
    })
  }

  /** Samples of `sluice_NAME`, or of a name with its own prefix, that have these labels. */
  samples(name: string, labels: Readonly<Record<string, string>> = {}): readonly Sample[] {
    const full = name.startsWith('process_') ? name : `sluice_${name}`
    const wanted = Object.entries(labels)
    return this.#samples.filter(
      sample => sample.name === full && wanted.every(([label, value]) => sample.labels[label] === value),
    )
  }

  /** Sum of the samples of `samples`; null without any. */
  find(name: string, labels: Readonly<Record<string, string>> = {}): number | null {
    const found = this.samples(name, labels)
    return found.length === 0 ? null : found.reduce((sum, { value }) => sum + value, 0)
  }

  /** Largest sample of `sluice_NAME` whose label has another value than `except`; 0 without any. */
  largest(name: string, label: string, except: string): number {
    const found = this.#samples.filter(sample => sample.name === `sluice_${name}` && sample.labels[label] !== except)
    return Math.max(0, ...found.map(({ value }) => value))
  }

  /** As `find`; 0 without any sample. */
  count(name: string, labels: Readonly<Record<string, string>> = {}): number {
    return this.find(name, labels) ?? 0
  }
}
