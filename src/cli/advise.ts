/** `advise`: which limits the running gateway has hit, which are never near, and what to set. */
import type { UsageReport } from '../plan/usage-report.ts'
import { advise as findingsOf, type Finding, type Traffic, TRAFFIC_MIN, trafficOf } from '../tune/advice.ts'
import { type CliArguments, EXIT_USAGE } from './arguments.ts'
import { sendAndReport } from './control-client.ts'
import { usage } from './help.ts'
import { counted, paint, type Terminal } from './terminal.ts'

export async function advise(
  args: CliArguments,
  output: Terminal = process.stdout,
  errorOutput: Terminal = process.stderr,
): Promise<number> {
  if (args.rest.length > 0) {
    errorOutput.write(usage('advise'))
    return EXIT_USAGE
  }
  return sendAndReport<UsageReport>(args.dataDir, { command: 'usage' }, errorOutput, report => {
    const findings = findingsOf(report)
    const traffic = trafficOf(report)
    if (args.json) output.write(`${JSON.stringify({ machine: report.machine, traffic, findings }, null, 2)}\n`)
    else print(output, traffic, findings)
    return 0
  })
}

function print(output: Terminal, { requests, seconds }: Traffic, findings: readonly Finding[]): void {
  const hits = findings.filter(({ verdict }) => verdict === 'hit')
  const since = `${counted(requests, 'request')} in ${durationText(seconds)}`
  const found = hits.length === 0 ? 'no limit was hit since the start' : `${counted(hits.length, 'limit')} hit`
  const few = requests < TRAFFIC_MIN ? ': too few to tell which limits are near' : ''
  output.write(`${found} (${since})${few}\n`)
  for (const finding of findings) {
    const { verdict, key, current, proposed, seen, reason } = finding
    const of = current === null ? '' : ` = ${current}`
    const change = proposed === null ? '' : ` -> ${proposed}`
    const style = verdict === 'hit' ? 'yellow' : 'dim'
    output.write(`\n${paint(output, style, verdict === 'hit' ? 'hit  ' : 'ample')}  ${key}${of}${change}\n`)
    output.write(`       ${seen}\n       ${reason}\n`)
  }
}

/** `12 s`, `3 h`, `2 d`: one unit. */
function durationText(seconds: number): string {
  const units = [
    ['d', 86_400],
    ['h', 3600],
    ['min', 60],
  ] as const
  const [unit, size] = units.find(([, size]) => seconds >= 2 * size) ?? ['s', 1]
  return `${Math.floor(seconds / size)} ${unit}`
}
