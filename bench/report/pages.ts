/** The pages of bench/results, and the parts of bench/README.md that point to them, as Markdown. */
import { formatCell } from '../measured-table.ts'
import type { ProgramRecord, ProgramRecords } from '../program-records.ts'
import type { Environment, Results } from '../results.ts'
import { type Scenario, SCENARIOS } from '../scenarios.ts'
import { type Published, runOf, TARGETS } from '../targets.ts'
import { environments, orderedScenarios, scenarioTable } from './markdown.ts'

interface Page {
  readonly file: string
  readonly title: string
  readonly kinds: readonly Scenario['kind'][]
}

const PAGES: readonly Page[] = [
  {
    file: 'published-proxies.md',
    title: 'Beside other proxies',
    kinds: ['closed', 'handshakes', 'tunnels', 'idle', 'fail-over', 'open'],
  },
  { file: 'published-paired.md', title: 'Paired scenarios', kinds: ['paired'] },
  {
    file: 'published-gateway.md',
    title: 'The gateway alone',
    kinds: ['startup', 'replay', 'healthcare', 'deliveries'],
  },
]
const PROGRAMS_FILE = 'published-programs.md'
const PROGRAMS_TITLE = 'Micro-benchmarks, memory, dashboard, soak, overshoot'
const WRITTEN = 'Written by `npm run bench:all`; method and terms: [bench/README.md](../README.md).'

function scenariosOf({ kinds }: Page, { scenarios }: Results): Results {
  const own = Object.entries(scenarios).filter(([name]) => kinds.includes(SCENARIOS[name]?.kind ?? 'open'))
  return { schema: 1, scenarios: Object.fromEntries(own) }
}

/** The pages by their file names. */
export function pagesOf({ results, programs }: Published): Readonly<Record<string, string>> {
  const scenarioPages = PAGES.map(page => {
    const own = scenariosOf(page, results)
    const tables = orderedScenarios(own).map(
      ([name, result]) => `<a id="${name}"></a>\n\n${scenarioTable(name, result)}`,
    )
    return [page.file, pageText(page.title, [environments(own), ...tables])]
  })
  return { ...Object.fromEntries(scenarioPages), [PROGRAMS_FILE]: programsText(programs) }
}

function pageText(title: string, parts: readonly string[]): string {
  return `${[`# ${title}`, WRITTEN, ...parts.filter(part => part !== '')].join('\n\n')}\n`
}

function programsText({ programs }: ProgramRecords): string {
  const parts = Object.entries(programs).map(([name, record]) => programText(name, record))
  return pageText(PROGRAMS_TITLE, parts)
}

function programText(name: string, record: ProgramRecord): string {
  const { title, command, tables, notes, startedAt, tookSeconds, environment, loadBefore } = record
  const when = `${startedAt.slice(0, 16)}Z, commit ${environment.commit}, ${tookSeconds} s, ${machineOf(environment)}.`
  const load = `Load average of the machine before: ${loadBefore.toFixed(1)}.`
  const shown = tables.map(({ title: heading, columns, rows }) => {
    const titles = Object.entries(columns)
    const lines = rows.map(({ name: row, cells }) => {
      const figures = titles.map(([, digits], at) => formatCell(cells[at], digits))
      return `| ${[row, ...figures].map(escapeCell).join(' | ')} |`
    })
    const head = `| ${[heading, ...titles.map(([column]) => column)].map(escapeCell).join(' | ')} |`
    return [head, `|---|${titles.map(() => '---:').join('|')}|`, ...lines].join('\n')
  })
  const below = [...notes, when, load].join('  \n')
  return [`<a id="${name}"></a>`, `### ${title}`, `    ${command}`, ...shown, below].join('\n\n')
}

function machineOf({ processors, processor, node }: Environment): string {
  return `${processors} processors (${processor}), Node ${node}`
}

function escapeCell(text: string): string {
  return text.replaceAll('|', '\\|')
}

/** The file of the page that shows a scenario or a program. */
function fileOf(source: string): string {
  const kind = SCENARIOS[source]?.kind
  return PAGES.find(({ kinds }) => kind !== undefined && kinds.includes(kind))?.file ?? PROGRAMS_FILE
}

/** A row per target with its result, verdict and run; targets without a published figure have none. */
export function targetsText(published: Published): string {
  const rows = TARGETS.map(({ what, source, judge }) => {
    const { result, verdict } = judge(published) ?? { result: '–', verdict: 'not measured' }
    const run = runOf(source, published)
    const link = run === undefined ? source : `[${source}](results/${fileOf(source)}#${source})`
    return `| ${[link, what, result, verdict, run ?? '–'].map(escapeCell).join(' | ')} |`
  })
  return ['| | Target | Result | Verdict | Run |', '|---|---|---|---|---|', ...rows].join('\n')
}

/** A row per page with what it contains and the days of its runs; below what has no published result. */
export function indexText({ results, programs }: Published, allPrograms: readonly string[]): string {
  const rows = PAGES.map(page => {
    const names = orderedScenarios(scenariosOf(page, results)).map(([name]) => name)
    return indexRow(
      page,
      names,
      names.map(name => results.scenarios[name]!.startedAt),
    )
  })
  const known = Object.keys(programs.programs)
  const days = known.map(name => programs.programs[name]!.startedAt)
  rows.push(indexRow({ file: PROGRAMS_FILE, title: PROGRAMS_TITLE }, known, days))
  const table = ['| Page | Contents | Runs |', '|---|---|---|', ...rows].join('\n')
  const lacking = [...Object.keys(SCENARIOS), ...allPrograms].filter(
    name => results.scenarios[name] === undefined && programs.programs[name] === undefined,
  )
  return lacking.length === 0 ? table : `${table}\n\nWithout a published result: ${lacking.join(', ')}.`
}

function indexRow(
  { file, title }: Pick<Page, 'file' | 'title'>,
  names: readonly string[],
  at: readonly string[],
): string {
  const days = at.map(startedAt => startedAt.slice(0, 10)).sort()
  const [first, last] = [days[0] ?? '–', days.at(-1) ?? '–']
  const span = first === last ? first : `${first} to ${last}`
  return `| [${title}](results/${file}) | ${names.join(', ')} | ${span} |`
}
