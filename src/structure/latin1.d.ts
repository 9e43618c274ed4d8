/** Fast paths of Buffer that Node documents by their slow twins only (`toString('latin1')`, `write(…, 'latin1')`). */
interface Buffer {
  latin1Slice(start: number, end: number): string
  latin1Write(text: string, offset: number): number
}
