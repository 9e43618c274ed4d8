/** The most expensive functions of the CPU profiles in a folder, one list per thread. */
import { readdirSync, readFileSync } from 'node:fs'

const FUNCTIONS_SHOWN = 25

interface ProfileNode {
  readonly id: number
  readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number }
}

interface CpuProfile {
  readonly nodes: readonly ProfileNode[]
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}

interface FunctionCost {
  readonly name: string
  readonly share: number
}

function functionLabel({ functionName, url, lineNumber }: ProfileNode['callFrame']): string {
  const name = functionName === '' ? '(anonymous)' : functionName
  if (url === '') return name
  const tail = url.split('/').slice(-2).join('/')
  return `${name} ${tail}:${lineNumber + 1}`
}

/** Self time by function, as shares of the busy time. */
export function functionCosts(profile: CpuProfile): FunctionCost[] {
  const labels = new Map(profile.nodes.map(node => [node.id, functionLabel(node.callFrame)]))
  const micros = new Map<string, number>()
  let busy = 0
  profile.samples.forEach((id, index) => {
    const label = labels.get(id) ?? '(unknown)'
    if (label === '(idle)') return
    const delta = profile.timeDeltas[index] ?? 0
    busy += delta
    micros.set(label, (micros.get(label) ?? 0) + delta)
  })
  const costs = [...micros].map(([name, spent]) => ({ name, share: busy === 0 ? 0 : spent / busy }))
  return costs.sort((a, b) => b.share - a.share)
}

export function profileText(folder: string): string {
  const files = readdirSync(folder).filter(name => name.endsWith('.cpuprofile'))
  if (files.length === 0) return `No profile was written to ${folder}.`
  const lists = files.sort().map(file => {
    const profile = JSON.parse(readFileSync(`${folder}/${file}`, 'utf8')) as CpuProfile
    const costs = functionCosts(profile).slice(0, FUNCTIONS_SHOWN)
    const lines = costs.map(({ name, share }) => `${(share * 100).toFixed(1).padStart(6)} %  ${name}`)
    return [`${folder}/${file}`, ...lines].join('\n')
  })
  return lists.join('\n\n')
}
