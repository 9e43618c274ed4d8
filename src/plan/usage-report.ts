/** Usage of a running gateway, as the primary reports it for `sluice advise`. */
export interface UsageReport {
  /** Text format of Prometheus. */
  readonly metrics: string
  /** Numbers in effect, by `section.key`. Secrets are no numbers. */
  readonly values: Readonly<Record<string, number>>
  readonly machine: {
    readonly processors: number
    readonly reactors: number
    readonly workerThreads: number
    /** `ulimit -n`; 0: unknown. */
    readonly openFiles: number
    /** Connections of all clients, and to all backends, that the open files allow; -1: unknown. */
    readonly clients: number
    readonly backends: number
  }
}
