/** Keys in tables: the columns are known by their titles. */
import { choicesOf, defaultOfCell, type Facts, type FoundKey, NOTHING_SAID, typeOfCell, unitAtStart } from './facts.ts'
import { type Block, SpecFault, splitOutside } from './markdown.ts'
import { membersOf, namesOfCell, type SectionName } from './names.ts'

/** Of a name among those of its row. */
interface Place {
  readonly name: string
  readonly index: number
  readonly count: number
}

const COLUMNS = ['Key', 'Keys', 'Section', 'Type', 'Default', 'Defaults', 'Default / meaning', 'Meaning']
/** What a transport is called where its two sections differ, and how their names end. */
const SIDES: Readonly<Record<string, string>> = { plain: 'http', secured: 'https' }

/** Before a remark on the type: the one section of the heading, by its last name, that has the key. */
const ONE_SECTION = /\((\w+), /

/** Reads the rows of one table; what a cell takes from the row above is kept. */
export class TableReader {
  readonly #sections: readonly SectionName[]
  #members: readonly string[] = []
  /** What was said of the members of a group, by their last names: another group has the "same". */
  readonly #above = new Map<string, Facts>()

  constructor(sections: readonly SectionName[]) {
    this.#sections = sections
  }

  read({ cells, line }: Block): readonly FoundKey[] {
    const strange = Object.keys(cells).find(column => !COLUMNS.includes(column))
    if (strange !== undefined) throw new SpecFault(line, `the column "${strange}" is not known`)
    const nameCell = cells.Key ?? cells.Keys ?? ''
    this.#members = membersOf(nameCell) ?? this.#members
    const names = namesOfCell(nameCell, this.#members, line)
    const keys = names.flatMap(({ name, aliasOf }, index) =>
      this.#sectionsFor(cells, name, line).map(section => {
        const facts = this.#facts(cells, section, { name, index, count: names.length })
        return { section, name: below(section, name), aliasOf: below(section, aliasOf), exampleOnly: false, facts }
      }),
    )
    for (const { name, facts } of keys) this.#above.set(lastOf(name), facts)
    return keys
  }

  #sectionsFor(cells: Block['cells'], name: string, line: number): readonly SectionName[] {
    if (cells.Section !== undefined) return [{ name: cells.Section, repeated: false }]
    if (this.#sections.length === 0) {
      // A table below no section names it with each key.
      if (!name.includes('.')) throw new SpecFault(line, `"${name}" stands in no section`)
      return [{ name: name.slice(0, name.indexOf('.')), repeated: false }]
    }
    const only = ONE_SECTION.exec(cells.Type ?? '')?.[1]
    return this.#sections.filter(section => only === undefined || section.name.endsWith(`.${only}`))
  }

  #facts(cells: Block['cells'], section: SectionName, place: Place): Facts {
    const typeCell = ofEach(cells.Type ?? '', /^\//, place)
    const type = typeOfCell(typeCell.replace(ONE_SECTION, '('))
    const meaning = cells.Meaning ?? ''
    const only = cells['Default / meaning']
    const unit = type.unit || unitAtStart(only ?? meaning)
    const choices = choicesOf(only ?? meaning)
    if (only !== undefined) {
      const isDefault = /^(?:true|false|-?\d+)$/.test(only)
      return { ...NOTHING_SAID, ...type, unit, choices, ...(isDefault ? defaultOfCell(only) : {}) }
    }
    const cell = ofSide(ofEach(cells.Default ?? cells.Defaults ?? '', /^, /, place), section)
    if (cell === 'same') return this.#above.get(lastOf(place.name)) ?? NOTHING_SAID
    const [, before, member, one, other] = /^(.*); (\w+) (\w+) or (\w+)$/.exec(cell) ?? []
    const ofMember = member !== undefined && member === lastOf(place.name) ? [one!, other!] : choices
    return { ...type, unit, choices: ofMember, ...defaultOfCell(before ?? cell) }
  }
}

/** A cell with as many parts as there are keys has one for each. */
function ofEach(cell: string, separator: RegExp, { index, count }: Place): string {
  const parts = splitOutside(cell, separator)
  return count > 1 && parts.length === count ? parts[index]! : cell
}

/** `8290 (plain), 8253 (secured)` */
function ofSide(cell: string, section: SectionName): string {
  const sides = [...cell.matchAll(/(\S+) \((\w+)\)/g)].filter(([, , side]) => SIDES[side!] !== undefined)
  return sides.find(([, , side]) => section.name.endsWith(`_${SIDES[side!]}`))?.[1] ?? cell
}

function lastOf(name: string): string {
  return name.slice(name.lastIndexOf('.') + 1)
}

function below({ name: section }: SectionName, name: string): string {
  return name.startsWith(`${section}.`) ? name.slice(section.length + 1) : name
}
