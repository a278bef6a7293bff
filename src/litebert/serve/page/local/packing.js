// Many short sequences in few rows; the same as `litebert/runtime/packing.py`.

const ROW_LENGTHS = [32, 64, 96, 128, 192, 256, 384, 512];
const ATTENTION_SHARE = 1 / 1200;
const MOST_SLOTS = 512;

/**
 * Put sequences into the rows of as few calls as fit.
 * Returns a list of `{ members, rows, starts, lengths, height, width }`: the place of each sequence.
 */
export function packRows(lengths, mostSlots = MOST_SLOTS) {
  if (!lengths.length) return [];
  const longest = Math.max(...lengths);
  const order = Array.from(lengths.keys()).sort((a, b) => lengths[b] - lengths[a] || a - b);
  const limit = Math.max(longest, Math.min(512, mostSlots));
  const tried = [...new Set([longest, ...ROW_LENGTHS.filter((n) => longest < n && n <= limit)])];
  let best = null;
  for (const width of tried.sort((a, b) => a - b)) {
    const rows = fill(order, lengths, width);
    const cost = costOf(rows);
    if (best === null || cost < best.cost) best = { rows, cost };
  }
  const rows = best.rows.sort((a, b) => b.used - a.used);
  return calls(rows, mostSlots).map((part) => placed(part, lengths));
}

/** Best fit: each sequence goes into the fullest row that still takes it. */
function fill(order, lengths, width) {
  const rows = [];
  const byRoom = Array.from({ length: width + 1 }, () => []);
  for (const index of order) {
    const size = lengths[index];
    let row = null;
    for (let room = size; room < width && row === null; room += 1) row = byRoom[room].pop() ?? null;
    if (row === null) {
      row = { members: [], used: 0 };
      rows.push(row);
    }
    row.members.push(index);
    row.used += size;
    if (row.used < width) byRoom[width - row.used].push(row);
  }
  return rows;
}

function costOf(rows) {
  const length = Math.max(...rows.map((row) => row.used));
  return rows.length * length * (1 + ATTENTION_SHARE * length);
}

function calls(rows, mostSlots) {
  const found = [];
  let width = 0;
  for (const row of rows) {
    if (!found.length || (found[found.length - 1].length + 1) * width > mostSlots) {
      found.push([]);
      width = row.used; // rows come longest first
    }
    found[found.length - 1].push(row);
  }
  return found;
}

function placed(rows, lengths) {
  const call = { members: [], rows: [], starts: [], lengths: [], height: rows.length, width: rows[0].used };
  rows.forEach((row, number) => {
    let start = 0;
    for (const member of row.members) {
      call.members.push(member);
      call.rows.push(number);
      call.starts.push(start);
      call.lengths.push(lengths[member]);
      start += lengths[member];
    }
  });
  return call;
}
